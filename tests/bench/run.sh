#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Measures statestored against yardsticks that run in the same minutes: a table, then lines `name value unit`.
#
#   sh tests/bench/run.sh            under ten minutes; run nothing else meanwhile
#   sh tests/bench/run.sh --quick    under one: whether it works, not how well
#
# On Debian 12 it first installs what is missing; that wants root, or sudo.

set -eu

cd "$(dirname "$0")/../.."
. server/packages.sh
install_packages $packages_build $packages_run $packages_bench

STATESTORE_BUILD=$PWD/build/bench
export STATESTORE_BUILD

[ -f "$STATESTORE_BUILD/build.ninja" ] ||
        meson setup "$STATESTORE_BUILD" --buildtype=release -Db_lto=true -Dtests=false -Dbench=true >/dev/null
ninja -C "$STATESTORE_BUILD" --quiet

# a thousand watchers have a thousand connections, twice: theirs and the broker's
ulimit -n "$(ulimit -H -n)"
exec /usr/bin/python3 tests/bench/bench.py "$@"
