#!/usr/bin/env bash
# Runs the server's tests under the address sanitizer. `make sanitize` calls it and sets LIBRARY and
# CARGO_TARGET_DIR.
set -euo pipefail

server=$(scripts/sanitized-server.sh "$CARGO_TARGET_DIR/servers/sanitized")

run_tests() {
    RL_MODULE=$(realpath "$1") REDIS_SERVER=$(realpath "$server") \
        cargo test --locked --test server --no-fail-fast
}

echo "The library as users load it:"
run_tests "$LIBRARY"

# Only then its own reads and writes are checked too, and not just the server's and the allocator's.
if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "There is no nightly Rust here, so the library's own reads and writes were not checked." >&2
    echo "Install it for that: rustup toolchain install nightly" >&2
    exit 0
fi
host=$(rustc +nightly --version --verbose | sed -n 's/^host: //p')
# With a target named, the flags are for what is built to run there and not for build scripts.
RUSTFLAGS=-Zsanitizer=address cargo +nightly build --release --locked --lib --target "$host"
echo "The library instrumented by rustc:"
run_tests "$CARGO_TARGET_DIR/$host/release/librl.so"
