#!/usr/bin/env bash
# Prints the notices of others that must go along with the library: of each crate that is linked into it
# the licence, and its text.
set -euo pipefail
cd "$(dirname "$0")/.."

manifests=$(cargo metadata --locked --format-version 1 | grep -o '"manifest_path":"[^"]*"' | cut -d '"' -f 4)

# Where there are texts of several licences, the one of MIT is enough.
text_of() {
    local folder=$1 name
    for name in LICENSE-MIT LICENSE-MIT.md LICENSE; do
        [[ ! -f $folder/$name ]] || { cat "$folder/$name"; return; }
    done
    echo "It comes without the text."
}

echo "librl.so has code of these in it, and of the standard library of Rust, by The Rust Project Contributors,"
echo "under the licence MIT, as that of the crate libc, or Apache-2.0."
cargo tree --locked --edges normal,no-proc-macro --prefix none --format '{p}|{l}' | sed 's/ (\*)//' |
    LC_ALL=C sort --unique | while IFS='|' read -r package licence; do
    read -r name version _ <<<"$package"
    [[ $name != redis-rl ]] || continue
    manifest=$(grep "/$name-${version#v}/Cargo.toml\$" <<<"$manifests")
    printf '\n%s\n%s %s: %s\n\n' "$(printf '%.0s-' {1..80})" "$name" "${version#v}" "$licence"
    text_of "$(dirname "$manifest")"
done
