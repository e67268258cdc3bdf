#!/usr/bin/env bash
# Builds the module from these sources and installs it below a folder: what the Dockerfiles run.
#
#   install.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."

make build
make install DESTDIR="$1"
