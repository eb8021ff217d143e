#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Clients come and go for as long as is said, at a constant rate, and the broker is restarted. Each minute: the memory,
# descriptors and latencies of the store and the broker; at the end whether they stayed as they were after the first
# minutes. Exit 1 where they did not.
#
#   sh tests/soak.sh [MINUTES]    60 unless said otherwise, 6 at least
#   sh tests/soak.sh --quick      under one: whether it works
#   sh tests/soak.sh --durable    with a data directory; either of the others may stand beside it
#
# On Debian 12 it first installs what is missing; that wants root, or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
install_packages $packages_build $packages_run $packages_soak

STATESTORE_BUILD=$PWD/build/release
export STATESTORE_BUILD

[ -f "$STATESTORE_BUILD/build.ninja" ] ||
        meson setup "$STATESTORE_BUILD" --buildtype=release -Db_lto=true -Dtests=false >/dev/null
ninja -C "$STATESTORE_BUILD" --quiet

ulimit -n "$(ulimit -H -n)"
exec /usr/bin/python3 tests/soak/soak.py "$@"
