#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For each start of a member of a cluster: end the sessions at its broker if another member leads. A client that comes back to
# a session from before the other one led would continue with what it knew then, and would miss what has happened since.
#
# usage: end_sessions.sh URL COMMAND...; the URL is the store's /readyz. The command restarts the broker, which must have
# "persistence false". Ends without it if this member leads: it was the last leader, or no other one has served.

set -eu

url=$1
shift
while :; do
        case $(curl -s --max-time 1 "$url") in
        ready*) exit ;;
        'standby: "'*'" leads') exec "$@" ;;
        esac
        sleep 0.2
done
