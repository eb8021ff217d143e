#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs every test; the last line says how many passed.
#
#   sh tests/run.sh              warnings are errors; format and includes are checked too
#   sh tests/run.sh --sanitize   the same tests under ASan and UBSan, leaks counted
#
# Tests whose packages cannot be downloaded are skipped, and the reason is printed; with CI set in the environment they
# fail.
#
# On Debian 12 it first installs what is missing; that wants root, or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
install_packages $packages_build $packages_run $packages_test

case ${1:-} in
'')
        build=$PWD/build/debug
        options=
        ;;
--sanitize)
        build=$PWD/build/sanitize
        options='-Db_sanitize=address,undefined -Db_lundef=false'
        ;;
*)
        echo "run.sh: $1: --sanitize or nothing was expected" >&2
        exit 2
        ;;
esac

[ -f "$build/build.ninja" ] || meson setup "$build" -Dwerror=true $options >/dev/null
ninja -C "$build" --quiet

results=$build/results
rm -rf "$results" "$build/tests/tap"
mkdir -p "$results"

# Reports go to files: a process whose exit code nobody reads must not get away with one.
ASAN_OPTIONS=log_path=$results/sanitizer:detect_stack_use_after_return=1
UBSAN_OPTIONS=log_path=$results/sanitizer:print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS

passed=0
failed=0

# check NAME COMMAND...: one test that is a command.
check() {
        name=$1
        shift
        if "$@"; then
                passed=$((passed + 1))
        else
                echo "FAILED: $name" >&2
                failed=$((failed + 1))
        fi
}

is_formatted() {
        git ls-files '*.c' '*.h' | xargs clang-format --dry-run --Werror
}

has_no_sanitizer_report() {
        ! cat "$results"/sanitizer* 2>/dev/null
}

[ -n "$options" ] || check 'the code is formatted by .clang-format' is_formatted

meson test -C "$build" --no-rebuild --print-errorlogs || :

STATESTORE_BUILD=$build /usr/bin/python3 -m pytest -q -rs -n 4 --dist loadgroup -p no:cacheprovider --junitxml="$results/integration.xml" \
        tests/integration || :

check 'no sanitizer has reported anything' has_no_sanitizer_report

# What ran is what the runners wrote: one that crashed has written less, and counts as a failure below.
/usr/bin/python3 tests/support/count_results.py "$build" "$passed" "$failed"
