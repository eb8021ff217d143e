#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measure what a cluster loses, and how long its clients wait, when machines, stores and brokers are lost. Three machines on
# loopback: each has an etcd, two also have a mosquitto and a member. Prints a table. Exits with 1 if something acknowledged was
# lost, executed twice or read from an old state.
#
#   sh tests/cluster.sh [ROUNDS]      default 50: about half an hour; run nothing else meanwhile
#   sh tests/cluster.sh --quick       about a minute, to check that it works
#   sh tests/cluster.sh --keys 1000000 1    also load this number of keys
#
# On Debian 12 it first installs missing packages, which requires root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_run $packages_cluster $packages_soak

build_to_measure

exec /usr/bin/python3 tests/cluster/table.py "$@"
