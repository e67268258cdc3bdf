#!/usr/bin/env bash
# Packs the library that was built: a tarball, and a Debian package where there is dpkg-deb. The same
# commit and the same library give the same bytes.
#
# Settings: LIBRARY, DIST_DIR, MODULES_DIR, and SOURCE_DATE_EPOCH for the time of the files.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

version=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
architecture=$(uname -m)

# The time of the last commit; that of a file where there is no repository.
commit_time=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$commit_time}

# A machine with a newer glibc may build a file that does not load where the README says it does.
glibc=$(scripts/glibc.sh "$LIBRARY")
stated=$(sed -n 's/.*glibc \([0-9.]*[0-9]\) or later.*/\1/p' README.md | head -n 1)
[[ $(printf '%s\n' "$glibc" "$stated" | sort --version-sort | tail -n 1) == "$stated" ]] || fail \
    "$LIBRARY needs glibc $glibc, and the README promises $stated. Build it on a system as old as that."

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
mkdir -p "$DIST_DIR"
scripts/notices.sh >"$stage/notices"

same_time() {
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

# The pages for those who use the module, and what they show.
documentation() {
    local folder=$1 file
    install -d "$folder"
    install -m 0644 README.md ARCHITECTURE.md redis.conf.example "$folder"
    find docs examples \( -name node_modules -o -name target -o -name .venv -o -name __pycache__ \) -prune \
        -o -type f ! -path examples/test.py -print | while IFS= read -r file; do
        install -D -m 0644 "$file" "$folder/$file"
    done
}

# What only a checkout has, a packed page names without a link.
unlink_what_is_missing() {
    local page target
    find "$1" -name '*.md' | while IFS= read -r page; do
        { grep -oP '\]\(\K[^)#:]+(?=[)#])' "$page" || true; } | while IFS= read -r target; do
            [[ -e ${page%/*}/$target ]] || sed -z -i "s|\[\([^]]*\)\]($target[^)]*)|\1|g" "$page"
        done
    done
}

tarball() {
    local name=redis-rl-$version-linux-$architecture
    local folder=$stage/$name
    documentation "$folder"
    install -m 0755 "$LIBRARY" "$folder/librl.so"
    install -m 0644 CHANGELOG.md LICENSE "$folder"
    install -m 0644 "$stage/notices" "$folder/NOTICES"
    unlink_what_is_missing "$folder"
    (cd "$folder" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >"$stage/sums")
    install -m 0644 "$stage/sums" "$folder/SHA256SUMS"
    same_time "$folder"
    tar --create --directory="$stage" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner "$name" |
        gzip --no-name --best >"$DIST_DIR/$name.tar.gz"
    echo "Packed $DIST_DIR/$name.tar.gz"
}

debian_package() {
    local debian_architecture folder=$stage/debian documentation
    debian_architecture=$(dpkg --print-architecture)
    documentation=$folder/usr/share/doc/redis-rl
    documentation "$documentation"
    unlink_what_is_missing "$documentation"
    install -d "$folder/DEBIAN" "$folder$MODULES_DIR"
    install -m 0755 "$LIBRARY" "$folder$MODULES_DIR/librl.so"
    cat LICENSE <(echo) "$stage/notices" >"$documentation/copyright"
    gzip --no-name --best <CHANGELOG.md >"$documentation/changelog.gz"
    cat >"$folder/DEBIAN/control" <<EOF
Package: redis-rl
Version: $version
Architecture: $debian_architecture
Maintainer: the redis-rl authors
Section: database
Priority: optional
Depends: libc6 (>= $glibc), libgcc-s1
Enhances: redis-server, valkey-server
Description: sliding-window rate limits as Redis commands
 A module for Redis and Valkey that decides inside the server whether a request may pass, by an exact
 sliding window log or by a sliding window counter.
 .
 To load it, add this line to the server's configuration and restart it:
 loadmodule $MODULES_DIR/librl.so
EOF
    (cd "$folder" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
    same_time "$folder"
    dpkg-deb --root-owner-group --build "$folder" \
        "$DIST_DIR/redis-rl_${version}_$debian_architecture.deb" >"$stage/log" || fail "$(<"$stage/log")"
    echo "Packed $DIST_DIR/redis-rl_${version}_$debian_architecture.deb"
}

tarball
if command -v dpkg-deb >/dev/null; then
    debian_package
else
    echo "There is no dpkg-deb here, so there is no Debian package."
fi
