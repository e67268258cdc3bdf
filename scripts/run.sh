#!/usr/bin/env bash
# Starts a server with the module on 127.0.0.1:PORT. `make run` calls it and sets
# PORT, CONF, RUN_DIR, LIBRARY and, if there is a server already, REDIS_SERVER.
set -euo pipefail

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

scripts/setup.sh cc libclang server

# What can be told before the build is: the first one takes a minute or two.
if ! [[ $PORT =~ ^[1-9][0-9]{0,4}$ ]] || ((PORT > 65535)); then
    fail "PORT=$PORT is not a port: give a number from 1 to 65535."
fi
if (: <"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; then
    fail "Port $PORT on 127.0.0.1 is taken: something, perhaps another redis-server, listens there." \
        "Take another port:                    make run PORT=$((PORT % 65535 + 1))" \
        "Or load the module into that server:  make && sudo make install"
fi

server=${REDIS_SERVER:-$(command -v redis-server || command -v valkey-server)}
version=$("$server" --version 2>/dev/null | sed -n 's/.* v=\([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p') || true
[[ -n $version ]] || fail "REDIS_SERVER=$server does not tell its version: is it a redis-server?"
IFS=. read -r major minor patch <<<"$version"
((major * 10000 + minor * 100 + patch >= 60202)) || fail \
    "$server is version $version, which is too old: the module needs Redis 6.2.2 or newer, or Valkey." \
    "Install a newer one and name it:  make run REDIS_SERVER=/path/to/redis-server"

cargo build --release --locked

# The configuration as it stands, but for two lines: the library just built instead of an installed
# one, and nothing that Redis 6 does not know.
mkdir -p "$RUN_DIR"
while IFS= read -r line; do
    case $line in
        loadmodule*librl.so*) line="loadmodule \"$(realpath "$LIBRARY")\"" ;;
        enable-module-command* | rl.*) ((major >= 7)) || continue ;;
    esac
    printf '%s\n' "$line"
done <"$CONF" >"$RUN_DIR/redis.conf"

cli=redis-cli
command -v redis-cli >/dev/null || cli=valkey-cli
cat <<END

Starting $server $version with the module on 127.0.0.1:$PORT. Its data is in $RUN_DIR.
Type this in another terminal, to let user:42 pass 5 times in any 60 seconds:

    $cli -p $PORT RL.SLIDE user:42 60s 5

The first number says 1 (pass) or, from the sixth call on, 0 (denied). Ctrl-C here stops the server.

END
exec "$server" "$RUN_DIR/redis.conf" --port "$PORT" --dir "$RUN_DIR"
