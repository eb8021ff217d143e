#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes one target and prints its row of run.sh's table.
#
# usage: run_target.sh BUILD SECONDS PROGRAM

set -eu

build=$1
seconds=$2
program=$3
name=${program##*/fuzz_}
corpus=$build/corpus/$name
log=$build/log/$name
status=0

ASAN_OPTIONS=detect_stack_use_after_return=1
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS

mkdir -p "$corpus" "$build/failures" "${log%/*}"
quiet=0
[ "$name" != config ] || quiet=3 # it says what is wrong with each
if ! "$build/$program" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -timeout=60 -entropic=0 -print_final_stats=1 \
        -close_fd_mask=$quiet -artifact_prefix="$build/failures/$name-" "$corpus" "tests/fuzz/seeds/$name" >"$log" 2>&1; then
        echo "FAILED: $name" >&2
        tail -n 40 "$log" >&2
        status=1
fi

sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 \2 \3/p; s/^stat::\([a-z_]*\): */\1 /p' "$log" |
        awk -v name="$name" '
                /^[0-9]/ { edges = $1; features = $2; corpus = $3 }
                $1 == "number_of_executed_units" { runs = $2 }
                $1 == "average_exec_per_sec" { speed = $2 }
                END { printf "%-18s %12s %9s %7s %9s %7s\n", name, runs, speed, edges, features, corpus }'
exit $status
