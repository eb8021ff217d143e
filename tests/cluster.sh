#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measure what a cluster loses, and how long its clients wait, when machines, stores, brokers and etcd are lost or cut off. Three
# machines: each has an etcd, two also have a mosquitto and a member. They are on loopback, and in the rows "partition" and
# "keepalived" in network namespaces, which require root. Prints a table. Exits with 1 if something acknowledged was lost, executed
# twice or read from an old state, if a lock ended early, if a leader changed beside a flood, or if the cluster did not serve again
# by itself.
#
#   sh tests/cluster.sh [ROUNDS]      default 50: about two and a half hours; run nothing else meanwhile
#   sh tests/cluster.sh --quick       some minutes, to check that it works
#   sh tests/cluster.sh --only machine,clocks 5    these rows; --help has their names
#   sh tests/cluster.sh --keys 1000000 1    also load this number of keys
#   sh tests/cluster.sh --minutes 50 1      all floods together last 50 minutes, not 10
#
# The row "samples" measures the samples that tests/published.sh has built. Another etcd than that of PATH:
#
#   sh tests/cluster/build_etcd.sh v3.6.16 /tmp/etcd
#   PATH=/tmp/etcd:$PATH sh tests/cluster.sh
#
# On Debian 12 it first installs missing packages, which requires root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_run $packages_cluster $packages_soak iproute2 keepalived strace

build_to_measure
cc -shared -fPIC -O2 -o "$STATESTORE_BUILD/tests/libclock_shim.so" tests/support/clock_shim.c

exec /usr/bin/python3 tests/cluster/table.py "$@"
