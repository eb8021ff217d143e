#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds statestored and runs it with a private mosquitto on 127.0.0.1, until Ctrl-C.
#
#   sh server/run.sh            on port 1883
#   PORT=11883 sh server/run.sh
#   sh server/run.sh --cluster  three machines on loopback, and HAProxy on 127.0.0.1: see conf/CLUSTER.md
#
# On Debian 12 the script first installs missing packages, which requires root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh

case $* in
'') cluster=false ;;
--cluster) cluster=true ;;
*)
        echo "run.sh: unknown arguments: $*: use --cluster or none" >&2
        exit 2
        ;;
esac
port=${PORT:-1883}
build=build/release

case $port in
'' | *[!0-9]* | ??????*) is_port=false ;;
*) is_port=$([ "$port" -ge 1 ] && [ "$port" -le 65535 ] && echo true || echo false) ;;
esac
if ! $is_port; then
        echo "run.sh: PORT is \"$port\": set it to a number from 1 to 65535" >&2
        exit 2
fi

install_packages $packages_build $packages_run
! $cluster || install_packages $packages_cluster

[ -x $build/server/statestored ] || echo "building: $build" >&2
set_up_build $build --buildtype=release -Db_lto=true -Dtests=false
ninja -C $build --quiet

directory=$(mktemp -d)

# write_broker_configuration FILE ADDRESS: write the configuration of a broker that listens at the address.
write_broker_configuration() {
        sed -e "s|^listener .*|listener $port $2|" \
                -e "s|^plugin .*|plugin $PWD/$build/server/plugin/mosquitto_statestore.so|" \
                conf/mosquitto.conf >"$1"
        # By default mosquitto drops root, and then might not be able to read the plugin.
        [ "$(id -u)" != 0 ] || echo 'user root' >>"$1"
}

# How to use it, for the text that the script prints when the store serves.
at=
[ "$port" = 1883 ] || at=" --port $port"
use=$(
        cat <<TEXT
Every program on this machine can use it without a password. In another terminal, here:

  export PATH=\$PWD/$build/server:\$PATH
  statestorectl$at set greeting hello
  statestorectl$at get greeting
  statestorectl$at watch greeting
TEXT
)

if $cluster; then
        . server/run_cluster.sh
        exit
fi

broker=
store=

stop() {
        trap - EXIT INT TERM
        [ -z "$store" ] || kill -TERM "$store" 2>/dev/null || :
        [ -z "$store" ] || wait "$store" 2>/dev/null || :
        [ -z "$broker" ] || kill -TERM "$broker" 2>/dev/null || :
        [ -z "$broker" ] || wait "$broker" 2>/dev/null || :
        rm -rf "$directory"
}
trap 'stop; exit 1' EXIT
trap 'stop; exit 0' INT TERM

write_broker_configuration "$directory/mosquitto.conf" 127.0.0.1
mosquitto=$(PATH=$PATH:/usr/sbin command -v mosquitto)
log=$directory/mosquitto.log
: >"$log" # exists before the broker runs, because wait_for reads it at once
"$mosquitto" -c "$directory/mosquitto.conf" >"$log" 2>&1 &
broker=$!

# wait_for COMMAND...: wait until the command succeeds. Fails if the process $waiting ends first.
wait_for() {
        until "$@"; do
                kill -0 "$waiting" 2>/dev/null || return 1
                sleep 0.02
        done
}

waiting=$broker
if ! wait_for grep -q 'mosquitto version .* running' "$log"; then
        if grep -q 'Address already in use' "$log"; then
                echo "run.sh: port $port is in use. Choose another one: PORT=11883 sh server/run.sh" >&2
                echo "run.sh: or, if it is the system's own mosquitto: systemctl stop mosquitto" >&2
        else
                echo "run.sh: mosquitto ended:" >&2
                cat "$log" >&2
        fi
        exit 1
fi

$build/server/statestorectl console-token you --operator >"$directory/console-users" 2>"$directory/token"
$build/server/statestored --port "$port" --ready-file "$directory/ready" --http-listen 0 \
        --console-users "$directory/console-users" &
store=$!

waiting=$store
wait_for test -e "$directory/ready" || exit 1 # statestored has logged the cause

cat <<TEXT

The state store is at mqtt://127.0.0.1:$port. $use

The console is a page in the browser: the line "ready" above has its address, and the token for it is

  $(cat "$directory/token")

Ctrl-C stops it.
TEXT

wait $store || :
