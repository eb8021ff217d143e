#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one unit test program and writes the results of its tests. Exits with 0 if all passed, at least one ran,
# and no sanitizer has reported anything.
#
# usage: run_unit.sh TAP_FILE PROGRAM
#
# Criterion runs each test in its own process, and ignores a leak that is reported when the process ends. So sanitizers
# write reports to files, and a report file is a failure.

set -u

tap=$1
program=$2

reports=$(mktemp -d) || exit 1
trap 'rm -rf "$reports"' EXIT
mkdir -p "$(dirname "$tap")" || exit 1
rm -f "$tap"

ASAN_OPTIONS=log_path=$reports/report:detect_stack_use_after_return=1
UBSAN_OPTIONS=log_path=$reports/report:print_stacktrace=1:halt_on_error=1
export ASAN_OPTIONS UBSAN_OPTIONS

"$program" -j1 --tap="$tap"
status=$?

if ! grep -q '^ok\|^not ok' "$tap" 2>/dev/null; then
        echo "run_unit.sh: $program: no test has run"
        status=1
fi
if cat "$reports"/report* 2>/dev/null; then
        echo "run_unit.sh: $program: a sanitizer has reported the above"
        echo "not ok - a sanitizer has reported an error" >> "$tap"
        status=1
fi
exit $status
