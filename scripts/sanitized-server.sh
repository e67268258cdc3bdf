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
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [[ -x $dir/redis-server ]]; then
    echo "$dir/redis-server"
    exit 0
fi

command -v apt-get >/dev/null && command -v gcc >/dev/null && [[ -f $keyring ]] || fail \
    "The sanitized server is built from Debian's source package of redis, which takes gcc, apt-get and" \
    "Debian's keys in $keyring: run this on Debian 12."

build=$dir/build
rm -rf "$build"
mkdir -p "$build"/{sources,lists/partial,source}
for archive in "debian bookworm bookworm-updates" "debian-security bookworm-security"; do
    read -r name suites <<<"$archive"
    cat <<END
Types: deb-src
URIs: http://deb.debian.org/$name
Suites: $suites
Components: main
Signed-By: $keyring

END
done >"$build/sources/debian.sources"

own_apt() {
    # As root, apt would fetch as a user of its own, who may not write here.
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$build/sources" \
        -o Dir::State::Lists="$build/lists" -o Dir::Cache="$build" -o APT::Sandbox::User=root "$@"
}

# The sanitizer's runtime goes into the server, so that what a test preloads does not come before it;
# gcc's also serves a module that rustc has instrumented.
{
    build=$(realpath "$build")
    own_apt update
    (cd "$build/source" && own_apt source redis)
    make -C "$build"/source/redis-*/src -j"$(nproc)" CC=gcc SANITIZER=address MALLOC=libc \
        REDIS_LDFLAGS=-static-libasan USE_SYSTEMD=no redis-server
    mv "$build"/source/redis-*/src/redis-server "$dir/"
    rm -rf "$build"
} >&2
echo "$dir/redis-server"
