#!/usr/bin/env bash
# Fuzzes what parses and what decides, guided by coverage: each target of fuzz/ in turn, FUZZ_SECONDS
# long, until something fails. FUZZ_TARGETS names some of them; RL_SEED repeats a run.
#
# What is found goes on from one run to the next, beside what was built. An input that fails is a
# file in fuzz/artifacts/; put it into fuzz/corpus/ once it is understood, and it is a test.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

seed=${RL_SEED:-$RANDOM$RANDOM}
targets=${FUZZ_TARGETS:-parse log hostile_log counters hostile_counters}
built=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
export CARGO_TARGET_DIR=$built RUST_BACKTRACE=${RUST_BACKTRACE:-0}
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS # they would replace those of fuzz/.cargo/config.toml

cargo build --release --locked
for target in $targets; do
    program=("$built"/*/release/"$target")
    found=$built/found/$target log=$built/$target.log
    mkdir -p "$found" artifacts
    echo "== $target, RL_SEED=$seed, in $log"
    "${program[0]}" "$found" "corpus/$target" -max_len=512 -timeout=20 -seed="$seed" \
        -max_total_time="${FUZZ_SECONDS:-300}" -artifact_prefix="artifacts/$target-" \
        >"$log" 2>&1 || { tail -n 50 "$log" >&2 && exit 1; }
    grep DONE "$log"
done
