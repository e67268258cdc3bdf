#!/usr/bin/env bash
# Builds Debian's redis-server under the address sanitizer, if it is not there yet; prints its path.
#
#   sanitized-server.sh DIR
#
# DIR keeps the server. Nothing of the system changes and no root is needed: the source comes through
# an apt that has its lists and its sources in DIR.
set -euo pipefail

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

dir=$1
if [[ -x $dir/redis-server ]]; then
    echo "$dir/redis-server"
    exit 0
fi

command -v apt-get >/dev/null && command -v gcc >/dev/null || fail \
    "The sanitized server is built from Debian's source package of redis, which takes gcc and apt-get:" \
    "run this on Debian 12."

build=$(realpath -m "$dir/build")
apt=$(dirname "$(realpath "$0")")/private-apt.sh
rm -rf "$build"
mkdir -p "$build/source"

# The sanitizer's runtime goes into the server, so that what a test preloads does not come before it;
# gcc's also serves a module that rustc has instrumented.
{
    (cd "$build/source" && "$apt" "$build/apt" deb-src "bookworm bookworm-updates bookworm-security" source redis)
    make -C "$build"/source/redis-*/src -j"$(nproc)" CC=gcc SANITIZER=address MALLOC=libc \
        REDIS_LDFLAGS=-static-libasan USE_SYSTEMD=no redis-server
    mv "$build"/source/redis-*/src/redis-server "$dir/"
    rm -rf "$build"
} >&2
echo "$dir/redis-server"
