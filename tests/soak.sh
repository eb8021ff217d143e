#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Clients connect and disconnect at a constant rate, and the broker is restarted. Prints memory, descriptors and latencies of
# store and broker each minute. Exits with 1 if they have grown since the first minutes.
#
#   sh tests/soak.sh [MINUTES]    default 60, minimum 6
#   sh tests/soak.sh --quick      under a minute, to check that it works
#   sh tests/soak.sh --durable    with a data directory; can be combined with either of the others
#
# On Debian 12 it first installs missing packages, which requires root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh
install_packages $packages_build $packages_run $packages_soak

build_to_measure

ulimit -n "$(ulimit -H -n)"
exec /usr/bin/python3 tests/soak/soak.py "$@"
