#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What .ci/run does not test of the packages:
#
#   sh tests/packages.sh same      two builds in different folders make the same bytes
#   sh tests/packages.sh arm64     cross-built; the store and the client of these packages run under user emulation
#   sh tests/packages.sh trixie    the packages for Debian 13 are installed, upgraded, removed and purged there
#
# On Debian 12 the script first installs missing packages, which requires root or sudo. arm64 and trixie require root.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
install_packages $packages_build $packages_run $packages_test

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

case ${1:-} in
same)
        mkdir "$scratch/another-folder"
        PACKAGES=$scratch/first sh conf/package.sh --tar >/dev/null
        (umask 027 && TMPDIR=$scratch/another-folder TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 PACKAGES=$scratch/second \
                sh conf/package.sh --tar >/dev/null)
        diff -r "$scratch/first" "$scratch/second"
        (cd "$scratch/first" && sha256sum ./*)
        ;;
arm64)
        PACKAGES=$scratch/packages sh conf/package.sh
        PACKAGES=$scratch/packages sh conf/package.sh --arch arm64
        lintian --fail-on warning "$scratch/packages/"*_arm64.deb
        /usr/bin/python3 -B tests/packages/arm64.py "$scratch/packages"
        ;;
trixie)
        STATESTORE_SUITE=trixie CI=true /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=5 \
                tests/integration/deployment/test_packages.py
        ;;
*)
        echo "usage: sh tests/packages.sh same | arm64 | trixie" >&2
        exit 2
        ;;
esac
