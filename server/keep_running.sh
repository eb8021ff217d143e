#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command, and starts it again after its end. The command's process id is in NAME.pid, its output in NAME.log. If this
# process ends, the kernel kills the command.
#
# usage: keep_running.sh NAME SECONDS COMMAND...

set -eu

name=$1
seconds=$2 # from an end to the next start
shift 2
while :; do
        setpriv --pdeathsig KILL -- "$@" >>"$name.log" 2>&1 &
        echo $! >"$name.pid"
        wait $! || :
        sleep "$seconds"
done
