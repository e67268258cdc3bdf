#!/usr/bin/env bash
# Prints the oldest glibc that a library loads with: the highest version among the symbols that it
# takes from there.
#
#   glibc.sh LIBRARY
set -euo pipefail

symbols=$(objdump -T "$1")
versions=$(grep -o 'GLIBC_[0-9.]*' <<<"$symbols" | sort -u --version-sort)
tail -n 1 <<<"${versions//GLIBC_/}"
