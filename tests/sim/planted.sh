#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sees that each planted fault is found, and that without one nothing is.
#
# usage: planted.sh PROGRAM

set -u

program=$1
status=0

"$program" --runs 100 || exit 1
for fault in $("$program" --planted); do
        if said=$("$program" --plant "$fault" --runs 20000 2>&1); then
                echo "not found: $fault"
                status=1
        else
                echo "$fault: $(echo "$said" | grep -v ERROR | head -n 1)"
        fi
done
exit $status
