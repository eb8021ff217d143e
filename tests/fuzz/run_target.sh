#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes one target and prints its row of run.sh's table.
#
# The same FUZZ_SEED gives the same sequence of inputs on every machine; a faster machine executes more of them. libFuzzer
# copies compared values, also addresses, into inputs, and reads files in the order of the directory. So address-space
# randomization is disabled if the kernel permits it, and the environment is empty.
#
# usage: run_target.sh BUILD SECONDS PROGRAM

set -eu

build=$1
seconds=$2
program=$3
name=${program##*/fuzz_}
log=$build/log/$name
status=0
fixed=
! setarch -R true 2>/dev/null || fixed='setarch -R'
quiet=0
[ "$name" != config ] || quiet=3 # this target prints a message for each invalid input

rm -rf "$build/seeds/$name"
mkdir -p "$build/corpus/$name" "$build/seeds/$name" "$build/failures" "${log%/*}"
cp "tests/fuzz/seeds/$name/"* "$build/seeds/$name"

# An input that takes five minutes hangs. The quarantine of freed memory is small to save memory.
if ! (cd "$build" && exec env -i PATH=/usr/bin:/bin \
        ASAN_OPTIONS=detect_stack_use_after_return=1:quarantine_size_mb=64 \
        UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
        $fixed "./$program" -seed="${FUZZ_SEED:-1}" -max_total_time="$seconds" -timeout=300 -entropic=0 -reload=0 \
        -print_final_stats=1 -close_fd_mask=$quiet -artifact_prefix="failures/$name-" \
        -seed_inputs="$(printf '%s\n' "seeds/$name/"* | LC_ALL=C sort | paste -sd,)" "corpus/$name") >"$log" 2>&1; then
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
