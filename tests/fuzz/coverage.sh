#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the line coverage of engine and codec by file: of the fuzz targets alone, and with the unit tests, which also
# let allocations fail. The targets run without libFuzzer over the seeds, over generated inputs, and over the corpus that
# fuzzing has collected on this machine (build/fuzz/corpus).
#
#   sh tests/fuzz/coverage.sh
#
# Exits with 1 if the coverage of server/engine or server/codec is below 95 %.

set -eu

cd "$(dirname "$0")/../.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_test

build=$PWD/build/coverage
targets='engine policy invocation resp3 hlc glob topics parse'

set_up_build "$build" -Db_coverage=true -Doptimization=1
ninja -C "$build" --quiet
find "$build" -name '*.gcda' -delete

# Print the covered lines of each file of a room. Fails below this percentage.
report() {
        gcov --no-output "$build/server/$1/lib$1.a.p/"*.gcda | awk -v layer="$1" -v by="$2" -v least="$3" '
                $1 == "File" { file = $2; gsub(/\047/, "", file); is_ours = file ~ "server/" layer "/.*[.]c$" }
                is_ours && /^Lines executed/ {
                        sub(/.*:/, ""); split($0, part, "% of ")
                        sub(/.*server\//, "server/", file)
                        printf "  %-34s %6.1f %% of %4d\n", file, part[1], part[2]
                        n_reached += part[1] * part[2] / 100; n += part[2]; is_ours = 0
                }
                END {
                        printf "coverage_%s_%s %.1f %%\n", layer, by, n ? 100 * n_reached / n : 0
                        exit !n || 100 * n_reached < least * n
                }'
}

for target in $targets; do
        program=$build/tests/fuzz/fuzz_$target
        corpus=build/fuzz/corpus/$target
        "$program" "tests/fuzz/seeds/$target" 2000 >/dev/null 2>&1
        [ ! -d "$corpus" ] || "$program" "$corpus" 0 >/dev/null 2>&1
done
report engine fuzz 0
report codec fuzz 0

meson test -C "$build" --suite unit --no-rebuild >/dev/null
status=0
report engine all 95 || status=1
report codec all 95 || status=1
exit $status
