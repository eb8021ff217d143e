#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Run the same seeds in two processes and compare their traces: every message and every change, in order. The processes
# have different addresses, so the comparison detects an order that depends on addresses.
#
# usage: repeat.sh PROGRAM RUNS

set -u

program=$1
runs=$2

if [ "$(cat /proc/sys/kernel/randomize_va_space)" = 0 ]; then
        echo "address-space randomization is off, so the comparison would detect nothing"
        exit 1
fi

trace() {
        "$program" --runs "$runs" --trace 2>&1 | sha256sum
}

first=$(trace)
second=$(trace)
nothing=$(sha256sum </dev/null)
if [ "$first" != "$second" ] || [ "$first" = "$nothing" ]; then
        echo "$runs runs differ between two processes; --trace shows the difference"
        exit 1
fi
