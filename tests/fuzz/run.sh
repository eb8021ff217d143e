#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every target with libFuzzer, ASan and UBSan, one target on each processor, and prints the speed and libFuzzer's
# edges and features.
#
#   sh tests/fuzz/run.sh                 10 seconds a target
#   sh tests/fuzz/run.sh 600 engine      ten minutes, this target alone
#
# The targets are listed in meson.build. The random seed is 1, or FUZZ_SEED; the same seed gives the same inputs.
#
# Exits with 1 if a target failed: the input is in build/fuzz/failures. Copy it to tests/fuzz/seeds/TARGET/NAME, so that every
# test run repeats it. The corpus stays in build/fuzz/corpus for the next run.

set -eu

cd "$(dirname "$0")/../.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_test $packages_fuzz

seconds=${1:-10}
[ $# -eq 0 ] || shift
build=${STATESTORE_FUZZ_BUILD:-$PWD/build/fuzz}

(export CC=clang && set_up_build "$build" -Dfuzz=true -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
        -Db_lundef=false '-Dc_args=-fsanitize=fuzzer-no-link -w')
ninja -C "$build" --quiet build.ninja >/dev/null
programs=$(ninja -C "$build" -t targets all | sed -n 's,^\(tests/fuzz/fuzz_[a-z0-9_]*\): .*,\1,p')
for name in "$@"; do
        case "$programs " in
        *"/fuzz_$name"[[:space:]]*) ;;
        *)
                echo "run.sh: $name: there is no such target" >&2
                exit 2
                ;;
        esac
done
[ $# -eq 0 ] || programs=$(printf 'tests/fuzz/fuzz_%s\n' "$@")
ninja -C "$build" --quiet $programs

printf '%-18s %12s %9s %7s %9s %7s\n' target runs runs/s edges features corpus
echo "$programs" | xargs -n 1 -P "$(nproc)" sh tests/fuzz/run_target.sh "$build" "$seconds" || exit 1
