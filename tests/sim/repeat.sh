#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the same seeds in two processes and compares what they trace: every message and every row, in order. The two have
# different addresses, so an order that depends on addresses shows.
#
# usage: repeat.sh PROGRAM RUNS

set -u

program=$1
runs=$2

if [ "$(cat /proc/sys/kernel/randomize_va_space)" = 0 ]; then
        echo "address-space randomization is off: nothing can be shown"
        exit 1
fi

trace() {
        "$program" --runs "$runs" --trace 2>&1 | sha256sum
}

first=$(trace)
second=$(trace)
nothing=$(sha256sum </dev/null)
if [ "$first" != "$second" ] || [ "$first" = "$nothing" ]; then
        echo "$runs runs differ from process to process; --trace shows where"
        exit 1
fi
