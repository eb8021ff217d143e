#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs all tests. The last line of output says how many passed.
#
#   sh tests/run.sh              warnings are errors; also checks the format
#   sh tests/run.sh --quick      without the integration tests, simulations and fuzz seeds: what a change must pass first
#
# There are two builds, build/debug and build/sanitize, the second with ASan, UBSan and the leak checker. The unit tests run with
# the sanitizers; --quick, which CI runs first, runs them without. The simulations run in both builds, and the seeds of the fuzz
# targets in build/debug. An integration test runs once: with the sanitizers, unless it is marked not_sanitized. The test of the
# simulation's own checks, sim_planted, runs each night: .github/workflows/nightly.yml.
#
# With STATESTORE_TEST_RUST=1 in the environment, the example in Rust is compiled, which takes about 100 s, and executed.
#
# Tests whose packages cannot be downloaded are skipped, and the reason is printed. If CI is set in the environment, they
# fail.
#
# On Debian 12 the script first installs missing packages, which requires root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_run $packages_test

debug=$PWD/build/debug
sanitize=$PWD/build/sanitize
case ${1:-} in
'')
        builds="$debug $sanitize"
        debug_suites='--suite sim --suite fuzz --no-suite planted'
        ;;
--quick)
        builds=$debug
        debug_suites='--suite unit --suite layers'
        ;;
*)
        echo "run.sh: unknown argument $1: use --quick or no argument" >&2
        exit 2
        ;;
esac

set_up_build "$debug" -Dwerror=true
# With -Og the tests take as long as with -O2, and compiling half as long. gcc's warnings are for -O2.
[ "$builds" = "$debug" ] || set_up_build "$sanitize" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=g \
        -Dwarning_level=0
for build in $builds; do
        ninja -C "$build" --quiet
        rm -rf "$build/results" "$build/tests/tap"
        mkdir -p "$build/results"
done

# Reports go to files: not every exit status of a process is checked.
ASAN_OPTIONS=log_path=$sanitize/results/sanitizer:detect_stack_use_after_return=1
UBSAN_OPTIONS=log_path=$sanitize/results/sanitizer:print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS

passed=0
failed=0

# check NAME COMMAND...: run a command and count it as a test.
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

# The formatter does not break comments and some macros.
has_no_long_line() {
        ! LC_ALL=C.UTF-8 git grep -nE '^.{110}' -- '*.c' '*.h'
}

passes_shellcheck() {
        git ls-files '*.sh' .ci/run | xargs shellcheck -x
}

passes_flake8() {
        git ls-files '*.py' | xargs /usr/bin/python3 -m flake8 --select=E9,F,W6 --extend-ignore=F811
}

has_no_sanitizer_report() {
        ! cat "$sanitize"/results/sanitizer* 2>/dev/null
}

# The document tests run meson test, too, with another log.
run_unit_tests() {
        for build in $builds; do
                suites=
                [ "$build" != "$debug" ] || suites=$debug_suites
                meson test -C "$build" --no-rebuild --print-errorlogs --logbase unit $suites >"$build/results/unit.txt" 2>&1 || :
                cp "$build/meson-logs/unit.json" "$build/results/"
        done
}

# run_integration_tests BUILD PROCESSES MARKS: run the tests that these marks select.
run_integration_tests() {
        STATESTORE_BUILD=$1 /usr/bin/python3 -m pytest -q -rs -n "$2" --dist loadgroup -p no:cacheprovider -m "$3" \
                --junitxml="$1/results/integration.xml" tests/integration || :
}

# Each process of pytest imports all tests: the first one here stores what Python compiles.
unset PYTHONDONTWRITEBYTECODE
[ "$builds" = "$debug" ] || /usr/bin/python3 -m pytest -q --collect-only tests/integration >/dev/null &
collecting=$!
check 'the code is formatted by .clang-format' is_formatted
check 'no line of C is longer than 109 columns' has_no_long_line
check 'shellcheck finds nothing in the scripts' passes_shellcheck
check 'flake8 finds no error in the Python files' passes_flake8
wait $collecting || :

# Beside each other: they wait for processes much of the time.
run_unit_tests &
running=$!
results=$builds
if [ "$builds" != "$debug" ]; then
        run_integration_tests "$debug" 3 not_sanitized >"$debug/results/integration.txt" 2>&1 &
        running="$running $!"
        run_integration_tests "$sanitize" 5 'not not_sanitized'
        results="$results $debug/results/integration.xml $sanitize/results/integration.xml"
fi
wait $running || :
for build in $builds; do
        cat "$build"/results/*.txt
done

check 'there are no sanitizer reports' has_no_sanitizer_report

# Count the results that the test runners wrote. A runner that crashed has written fewer, which counts as a failure.
/usr/bin/python3 tests/support/count_results.py "$passed" "$failed" $results
