#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One machine of "run.sh --cluster": etcd, mosquitto and statestored. If this process is killed, the kernel kills them all, as if
# the machine lost power.
#
# usage: run_machine.sh NAME PORT BUILD DIRECTORY; the name is a, b or c

set -eu

name=$1
port=$2
build=$3
directory=$4

url_a=http://127.0.0.11
url_b=http://127.0.0.12
url_c=http://127.0.0.13
case $name in
a) url=$url_a others="$url_b:2379,$url_c:2379" ;;
b) url=$url_b others="$url_c:2379,$url_a:2379" ;;
c) url=$url_c others="$url_a:2379,$url_b:2379" ;;
esac
address=${url#http://}

# keep PROGRAM ARGUMENT...: run the program. Start it again 0.2 s after its end.
keep() {
        setpriv --pdeathsig KILL -- sh server/keep_running.sh "$directory/${1##*/}" 0.2 "$@" &
}

# After a boot, the directory of the service manager is empty.
rm -rf "$directory/run"
mkdir -p "$directory/run"

keep etcd --name "$name" --data-dir "$directory/etcd" \
        --listen-client-urls "$url:2379" --advertise-client-urls "$url:2379" \
        --listen-peer-urls "$url:2380" --initial-advertise-peer-urls "$url:2380" \
        --initial-cluster "a=$url_a:2380,b=$url_b:2380,c=$url_c:2380" \
        --auto-compaction-mode periodic --auto-compaction-retention 10m

PATH=$PATH:/usr/sbin
keep mosquitto -c "$directory/mosquitto.conf"

export RUNTIME_DIRECTORY="$directory/run"
keep "$build/server/statestored" --member "$name" --host "$address:$port" --require-plugin on \
        --etcd "$url:2379,$others" --http-listen "$address:9464"
wait
