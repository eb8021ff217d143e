#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What .ci/run does not test of the packages:
#
#   sh tests/packages.sh same      two builds in different folders make the same bytes
#   sh tests/packages.sh arm64     cross-built packages, and images of them, whose programs run under user emulation
#   sh tests/packages.sh trixie    the packages for Debian 13 are installed, upgraded, removed and purged there
#   sh tests/packages.sh client    the published Rust client, which is compiled, uses a store that was installed as README.md says
#   sh tests/packages.sh upgrade COMMIT    the same as .ci/run, from the packages of this commit
#
# On Debian 12 the script first installs missing packages, which requires root or sudo. arm64 and trixie require root.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. conf/debian_root.sh
install_packages $packages_build $packages_run $packages_test

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run_tests TEST...: in tests/integration/deployment
run_tests() {
        (cd tests/integration/deployment && CI=true /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=5 "$@")
}

case "$*" in
same)
        mkdir "$scratch/another-folder"
        PACKAGES=$scratch/first sh conf/package.sh --tar >/dev/null
        (umask 027 && TMPDIR=$scratch/another-folder TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 PACKAGES=$scratch/second \
                sh conf/package.sh --tar >/dev/null)
        diff -r "$scratch/first" "$scratch/second"
        (cd "$scratch/first" && sha256sum ./*)
        ;;
arm64)
        let_programs_run arm64
        STATESTORE_ARCHITECTURE=arm64 run_tests test_image.py test_packages.py::test_lintian_finds_nothing
        ;;
trixie)
        STATESTORE_SUITE=trixie run_tests test_packages.py
        ;;
client)
        STATESTORE_TEST_RUST=1 run_tests test_packages.py -k published_client
        ;;
"upgrade "*)
        git clone --quiet --no-checkout . "$scratch/old"
        git -C "$scratch/old" checkout --quiet "$(git rev-parse "$2^{commit}")"
        # a lower version than that of this tree, which may be the same
        sed -i '1s/)/~old)/' "$scratch/old/conf/debian/changelog"
        PACKAGES=$scratch/packages sh "$scratch/old/conf/package.sh"
        STATESTORE_OLD_PACKAGES=$scratch/packages run_tests test_packages.py -k upgraded
        ;;
*)
        echo "usage: sh tests/packages.sh same | arm64 | trixie | client | upgrade COMMIT" >&2
        exit 2
        ;;
esac
