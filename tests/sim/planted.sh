#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Check that each planted fault is detected, and that runs without a fault pass.
#
# usage: planted.sh PROGRAM

set -u

program=$1
status=0

"$program" --runs 100 || exit 1
for fault in $("$program" --planted); do
        if output=$("$program" --plant "$fault" --runs 20000 2>&1); then
                echo "not detected: $fault"
                status=1
        else
                echo "$fault: $(echo "$output" | grep -v ERROR | head -n 1)"
        fi
done
exit $status
