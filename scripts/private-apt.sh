#!/usr/bin/env bash
# Runs apt-get with sources and lists of its own: the system's stay as they are, and no root is needed.
#
#   private-apt.sh DIR TYPE "SUITE ..." WORD...
#
# DIR keeps the lists, which are fetched the first time. TYPE is deb or deb-src. The words are those of
# apt-get. Packages come from where the system gets its own.
set -euo pipefail

dir=$(realpath -m "$1") type=$2 suites=$3
shift 3

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m1 '/debian/$') && [[ -f $keyring ]] || {
    echo "This takes a Debian whose packages come from a mirror, and its keys in $keyring." >&2
    exit 1
}

mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
for suite in $suites; do
    archive=$mirror
    [[ $suite != *-security ]] || archive=${mirror%/debian/}/debian-security/
    printf '%s\n' "Types: $type" "URIs: $archive" "Suites: $suite" "Components: main" \
        "Architectures: amd64" "Signed-By: $keyring" ""
done >"$dir/debian.sources"

# As root, apt would fetch as a user of its own, who may not write here.
own_apt() {
    apt-get -q -o "Dir::Etc::sourcelist=$dir/debian.sources" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@"
}

[[ -e $dir/updated ]] || { own_apt update && touch "$dir/updated"; } >&2
own_apt "$@"
