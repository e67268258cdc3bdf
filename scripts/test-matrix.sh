#!/usr/bin/env bash
# Runs the tests of the server against each of several servers, and prints a table of the results.
#
#   RL_MODULE=LIBRARY test-matrix.sh NAME...     the names are those of scripts/servers.sh
#
# RL_TOPOLOGY=replica, aof or cluster puts the servers into a topology: tests/server/harness/topology.rs.
#
# A cell is how many tests passed, how many failed (!), and how many said that they, or a part of them,
# are not for this server (~). Their reasons stand below the table.
set -euo pipefail
cd "$(dirname "$0")/.."

topology=${RL_TOPOLOGY:-}
logs=$(realpath -m "${CARGO_TARGET_DIR:-target}/matrix/${topology:-alone}")
# There a server waits more than it works, most of all a node of a cluster, for two seconds each time.
if [[ -n $topology ]]; then export RUST_TEST_THREADS=${RUST_TEST_THREADS:-16}; fi
rm -rf "$logs"
mkdir -p "$logs"
for name in "$@"; do scripts/servers.sh "$name" >/dev/null; done
tests=$(cargo test --locked --test server --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')

status=0
for name in "$@"; do
    server=$(scripts/servers.sh "$name")
    echo "== $name${topology:+, $topology}: $("$server" --version)"
    if REDIS_SERVER=$server "$tests" --show-output >"$logs/$name" 2>&1; then
        grep '^test result:' "$logs/$name"
    else
        status=1
        sed -n '/^failures:$/,$p' "$logs/$name"
    fi
done

cd "$logs"
awk -v topology="$topology" '
    function cell(server, group,    text) {
        text = count[server, group, "ok"] + 0
        if ((server, group, "FAILED") in count) text = text " !" count[server, group, "FAILED"]
        if ((server, group, "skipped") in count) text = text " ~" count[server, group, "skipped"]
        return text
    }
    function row(group,    line, i) {
        line = sprintf("%-20s", group)
        for (i = 1; i <= servers; i++) line = line sprintf(" %-10s", cell(server[i], group))
        print line
    }
    FNR == 1 { server[++servers] = FILENAME }
    /^test .* \.\.\. / {
        group = $2
        sub(/::.*/, "", group)
        if (!(group in known)) { known[group]; groups[++many] = group }
        became[FILENAME, $2] = $4
        group_of[$2] = group
    }
    /^---- .* stdout ----$/ { test = $2 }
    /^skipped: / && became[FILENAME, test] == "ok" {
        became[FILENAME, test] = "skipped"
        if (!((FILENAME, $0) in said)) where[$0] = where[$0] " " FILENAME
        said[FILENAME, $0]++
    }
    END {
        for (pair in became) {
            split(pair, part, SUBSEP)
            count[part[1], group_of[part[2]], became[pair]]++
            count[part[1], "all", became[pair]]++
        }
        line = sprintf("\n%-20s", topology)
        for (i = 1; i <= servers; i++) line = line sprintf(" %-10s", server[i])
        print line
        for (i = 1; i <= many; i++) row(groups[i])
        row("all")
        print ""
        for (reason in where) print reason ":" where[reason]
    }' "$@"
exit "$status"
