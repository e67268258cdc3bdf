# `make help` lists what there is. The words in capitals are settings:
# `make run PORT=6380`, `make install DESTDIR=/tmp/stage`.

# --- Settings -----------------------------------------------------------------

# Where `make run` listens, the configuration it starts from, and where it keeps its data.
PORT    ?= 6379
CONF    ?= redis.conf.example
RUN_DIR ?= $(CARGO_TARGET_DIR)/run/$(PORT)

# The server to run and to test with.
REDIS_SERVER ?= $(shell command -v redis-server || command -v valkey-server)

# The servers that `make test-matrix` gets and tests with, by the names that scripts/servers.sh has.
SERVERS ?= $(shell scripts/servers.sh)

# The topologies that `make test-topologies` puts these servers into.
TOPOLOGIES ?= replica aof cluster

# Where `make install` puts the library. Debian's service may execute nothing outside /usr/lib and /lib.
PREFIX      ?= /usr
MODULES_DIR  = $(PREFIX)/lib/redis/modules

# Where `make dist` puts what it packs.
DIST_DIR ?= $(CARGO_TARGET_DIR)/dist

# Said to cargo, so that both mean the same place whatever cargo's own configuration says.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
LIBRARY = $(CARGO_TARGET_DIR)/release/librl.so

# What tests and benchmarks load, and into which server.
ON_SERVER = RL_MODULE="$$(realpath "$(LIBRARY)")" REDIS_SERVER="$(REDIS_SERVER)"

.DEFAULT_GOAL = build
# Cargo uses all cores by itself.
.NOTPARALLEL:
.PHONY: build run test test-matrix test-topologies full fuzz fuzz-pure sanitize miri test-examples setup \
        bench-test bench bench-instructions bench-baseline bench-listpack bench-memory accuracy charts \
        install uninstall dist demo fmt lint deny clean help

# --- Build, run, test ---------------------------------------------------------

build: ## build the library (the default)
	@scripts/setup.sh cc libclang
	cargo build --release --locked

run: ## install what is missing, build, start a server with the module (PORT= REDIS_SERVER=)
	@PORT="$(PORT)" CONF="$(CONF)" RUN_DIR="$(RUN_DIR)" LIBRARY="$(LIBRARY)" \
	    REDIS_SERVER="$(REDIS_SERVER)" exec scripts/run.sh

# The tests load the release build, the file that users load. What they link themselves is built
# again, with overflow checks.
test: setup build ## install what is missing, build, run the module's tests (REDIS_SERVER=)
	$(ON_SERVER) \
	    cargo test --locked --no-fail-fast

test-matrix: setup build ## the tests of the server with each of many servers, and a table (SERVERS=)
	@RL_MODULE="$$(realpath "$(LIBRARY)")" scripts/test-matrix.sh $(SERVERS)

test-topologies: setup build ## the same with a replica, an AOF, a cluster; takes long (TOPOLOGIES= SERVERS=)
	@status=0; for topology in $(TOPOLOGIES); do RL_TOPOLOGY=$$topology \
	    RL_MODULE="$$(realpath "$(LIBRARY)")" scripts/test-matrix.sh $(SERVERS) || status=1; \
	done; exit $$status

full: export PROPTEST_CASES ?= 5000
full: export RL_STREAM_REQUESTS ?= 1000000
full: export RL_LEAK_CALLS ?= 200000
full: test ## the same with many more random cases; takes long

fuzz: export RL_FUZZ_CALLS ?= 10000000
fuzz: setup build fuzz-pure ## fuzz-pure, then millions of hostile calls to a server (RL_SEED=)
	$(ON_SERVER) \
	    cargo test --locked --test server hostile -- --nocapture

fuzz-pure: export FUZZ_SECONDS ?= 300
fuzz-pure: ## fuzz parsing and deciding, guided by coverage (FUZZ_SECONDS= for each target, RL_SEED=)
	@scripts/setup.sh cc c++
	@scripts/fuzz.sh

sanitize: setup build ## run the server's tests under the address sanitizer (Debian); takes long
	@scripts/setup.sh source
	@LIBRARY="$(LIBRARY)" scripts/sanitize.sh

# Left out is what walks whole worlds or thousands of records: Miri is a thousand times slower.
miri: export PROPTEST_CASES ?= 4
miri: export MIRIFLAGS ?= -Zmiri-disable-isolation
miri: ## run the pure tests under Miri, with a nightly Rust that has it; takes long
	@cargo +nightly miri --version >/dev/null 2>&1 || { echo "Miri is missing, so nothing was checked:" \
	    "rustup toolchain install nightly --component miri,rust-src" >&2; exit 1; }
	cargo +nightly miri test --locked --no-fail-fast --lib --test limiter --test denied -- \
	    --skip exhaustive --skip canary --skip twin --skip huge_name --skip keep_the_bounds \
	    --skip hot_key --skip the_seed_changes --skip forgets_everything

test-examples: setup build ## start each program in examples/, and call it over HTTP (ONLY=Python)
	@scripts/setup.sh fastapi express go curl
	cargo fmt --check --manifest-path examples/rust/Cargo.toml
	$(ON_SERVER) python3 examples/test.py $(ONLY)

setup: ## install what building, running and testing need, if it is missing
	@scripts/setup.sh cc libclang server redis-py

# --- Benchmarks ---------------------------------------------------------------

bench-test: setup build ## check and test the benchmarks' own code
	cargo fmt --check --manifest-path bench/Cargo.toml
	cargo clippy --locked --all-targets --manifest-path bench/Cargo.toml -- -D warnings
	$(ON_SERVER) \
	    cargo test --locked --manifest-path bench/Cargo.toml

# The contenders run in the release build's server. REDIS_CELL= names the library of redis-cell.
BENCH = $(ON_SERVER) \
    cargo run --quiet --release --locked --manifest-path bench/Cargo.toml --bin

bench: setup build ## time the contenders side by side, in some ten minutes (ROUNDS= CALLS= ONLY=scenario)
	@$(BENCH) time

demo: setup build ## show in the terminal what three limiters let pass of bursts, in 40 s (SPEED=)
	@$(BENCH) demo

bench-instructions: setup build ## count instructions a call, and compare with the baseline (ONLY=row GATE=1)
	@scripts/setup.sh valgrind
	@$(BENCH) instructions

bench-baseline: export BASELINE = write
bench-baseline: export GATE = 1
bench-baseline: bench-instructions ## take the baseline that instructions are compared with anew

bench-listpack: setup build ## what zset-max-listpack-entries decides: instructions and memory
	@scripts/setup.sh valgrind
	@$(BENCH) listpack

bench-memory: setup build ## the memory of limiters, and what a million users need
	@$(BENCH) memory

accuracy: ## simulate how often limiters are wrong: tables, and figures and pictures in docs/img
	@scripts/setup.sh cc
	cargo run --release --locked --manifest-path bench/Cargo.toml --bin accuracy

charts: ## draw the pictures in docs/img, and the tables of docs/BENCHMARKS.md, again from the figures
	@scripts/setup.sh cc
	cargo run --release --locked --manifest-path bench/Cargo.toml --bin charts

# --- Install ------------------------------------------------------------------

# A library that is there is taken as it is: `make && sudo make install` builds nothing as root.
# install(1) replaces the file instead of writing into it, so a server that has it loaded goes on.
install: ## copy the library to PREFIX/lib/redis/modules (DESTDIR= PREFIX=)
	@[ -f "$(LIBRARY)" ] || $(MAKE) --no-print-directory build
	@install -d -m 0755 "$(DESTDIR)$(MODULES_DIR)" && \
	    install -m 0755 "$(LIBRARY)" "$(DESTDIR)$(MODULES_DIR)/librl.so" || \
	    { [ "$$(id -u)" = 0 ] || echo "Not permitted? Then: sudo make install" >&2; exit 1; }
	@echo "Installed $(DESTDIR)$(MODULES_DIR)/librl.so"
	@echo "Next:$(if $(DESTDIR), once it is at $(MODULES_DIR)/librl.so,) add this line to redis.conf (on Debian"
	@echo "/etc/redis/redis.conf) and restart the server:"
	@echo
	@echo "    loadmodule $(MODULES_DIR)/librl.so"
	@echo

uninstall: ## remove the installed library (DESTDIR= PREFIX=)
	@if [ -f "$(DESTDIR)$(MODULES_DIR)/librl.so" ]; then \
	    rm "$(DESTDIR)$(MODULES_DIR)/librl.so" && echo "Removed $(DESTDIR)$(MODULES_DIR)/librl.so" && \
	    echo "Next: take its loadmodule line out of redis.conf, or the server will not start again."; \
	else echo "Nothing is installed at $(DESTDIR)$(MODULES_DIR)/librl.so"; fi

dist: build ## pack a tarball and a Debian package (DIST_DIR=)
	@LIBRARY="$(LIBRARY)" DIST_DIR="$(DIST_DIR)" MODULES_DIR="$(MODULES_DIR)" scripts/dist.sh

# --- For developers -----------------------------------------------------------

fmt: ## format the code
	cargo fmt

lint: ## check format and lints as CI does
	cargo fmt --check
	@scripts/setup.sh cc libclang
	cargo clippy --locked --all-targets -- -D warnings

# Every crate of the repository has a graph of its own. CHECKS="licenses bans sources" needs no network
# once the crates are there.
deny: ## look up licences, sources and known flaws of dependencies: needs cargo-deny, network (CHECKS=)
	@cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny is missing, so nothing was checked:" \
	    "cargo install --locked cargo-deny" >&2; exit 1; }
	@for crate in . bench fuzz examples/rust; do echo "$$crate:" && \
	    cargo deny --locked --config deny.toml --manifest-path $$crate/Cargo.toml check $(CHECKS) || exit 1; done

clean: ## remove all that was built, and the data of `make run`
	cargo clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	    while IFS='|' read -r goal what; do printf '  make %-18s %s\n' "$$goal" "$$what"; done
