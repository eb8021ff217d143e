#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every target for so many seconds with libFuzzer, ASan and UBSan, and says how fast that was and how much of the
# code was reached (libFuzzer's edges and features).
#
#   sh tests/fuzz/run.sh                 10 seconds a target
#   sh tests/fuzz/run.sh 600 engine      ten minutes, this target alone
#
# Exits with 1 where a target failed: the input is then in build/fuzz/failures. Keep it as tests/fuzz/seeds/TARGET/NAME:
# then every test run repeats it. What fuzzing has found interesting stays in build/fuzz/corpus for the next time.

set -eu

cd "$(dirname "$0")/../.."
. server/packages.sh
install_packages $packages_build $packages_test clang libclang-rt-14-dev

seconds=${1:-10}
[ $# -eq 0 ] || shift
build=${STATESTORE_FUZZ_BUILD:-$PWD/build/fuzz}

[ -f "$build/build.ninja" ] || CC=clang meson setup "$build" -Dfuzz=true -Dbuildtype=debugoptimized \
        -Db_sanitize=address,undefined -Db_lundef=false '-Dc_args=-fsanitize=fuzzer-no-link -w' >/dev/null
ninja -C "$build" --quiet build.ninja >/dev/null
targets=$(ninja -C "$build" -t targets all | sed -n 's,^\(tests/fuzz/fuzz_[a-z0-9_]*\): .*,\1,p')
ninja -C "$build" --quiet $targets

ASAN_OPTIONS=detect_stack_use_after_return=1
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS

mkdir -p "$build/failures" "$build/log"
status=0
printf '%-18s %12s %9s %7s %9s %7s\n' target runs runs/s edges features corpus
for program in $targets; do
        name=${program##*/fuzz_}
        case " $* " in
        '  ' | *" $name "*) ;;
        *) continue ;;
        esac

        corpus=$build/corpus/$name
        log=$build/log/$name
        mkdir -p "$corpus"
        quiet=0
        [ "$name" != config ] || quiet=3 # it says what is wrong with each
        if ! "$build/$program" -max_total_time="$seconds" -timeout=60 -entropic=0 -print_final_stats=1 -close_fd_mask=$quiet \
                -artifact_prefix="$build/failures/$name-" "$corpus" "tests/fuzz/seeds/$name" >"$log" 2>&1; then
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
done
exit $status
