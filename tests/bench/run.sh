#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measure statestored and yardsticks that run in the same minutes. Prints tables, then lines `name value unit`.
#
#   sh tests/bench/run.sh            about ten minutes; run nothing else meanwhile
#   sh tests/bench/run.sh --quick    about two minutes; checks only that the measurements work
#
# On Debian 12 it installs missing packages first, which requires root or sudo.

set -eu

cd "$(dirname "$0")/../.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_run $packages_bench

build_to_measure

# a thousand watchers need a thousand connections, at both ends
ulimit -n "$(ulimit -H -n)"
exec /usr/bin/python3 tests/bench/bench.py "$@"
