#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs the unit tests on a platform that .ci/run does not have:
#
#   sh tests/platforms.sh clang      clang instead of gcc
#   sh tests/platforms.sh trixie     Debian 13
#   sh tests/platforms.sh i386       32 bits
#   sh tests/platforms.sh arm64      cross-built. User emulation runs the simulation and the seeds of the fuzz targets.
#                                    Criterion does not work there.
#
# All but clang install Debian into a temporary folder with debootstrap, which requires root. On 32 bits, conversions
# in test code are warnings, and fuzz targets that need integers of 128 bits are left out.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. conf/debian_root.sh
platform=${1:-}

# Runs in the installation of Debian, in which this repository is /src.
build_in_debian() {
        cd /src
        case $platform in
        trixie)
                install_packages $packages_build libcriterion-dev git python3
                meson setup /build -Dwerror=true
                ninja -C /build --quiet
                meson test -C /build --no-rebuild --print-errorlogs
                ;;
        i386)
                install_packages $packages_build libcriterion-dev
                meson setup /build-product -Dtests=false -Dwerror=true
                ninja -C /build-product --quiet
                meson setup /build
                meson test -C /build --print-errorlogs --suite unit
                ;;
        arm64)
                build_for_arm64
                ;;
        esac
}

# mosquitto-dev and uthash-dev consist of headers and have no architecture.
build_for_arm64() {
        dpkg --add-architecture arm64
        foreign=
        native="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
        for package in $packages_build libcriterion-dev; do
                case $package in
                gcc | libc6-dev | meson | mosquitto-dev | ninja-build | pkg-config | scdoc | uthash-dev) native="$native $package" ;;
                *) foreign="$foreign $package:arm64" ;;
                esac
        done
        install_packages $native $foreign

        printf '%s\n' '[binaries]' "c = 'aarch64-linux-gnu-gcc'" "ar = 'aarch64-linux-gnu-ar'" \
                "strip = 'aarch64-linux-gnu-strip'" "pkgconfig = 'pkg-config'" "exe_wrapper = 'qemu-aarch64-static'" \
                '[host_machine]' "system = 'linux'" "cpu_family = 'aarch64'" "cpu = 'armv8-a'" "endian = 'little'" >/cross.ini
        export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
        meson setup /build --cross-file /cross.ini -Dwerror=true
        ninja -C /build --quiet
        # fuzz_policy reads /proc/self/fd, which the emulation does not have for its files
        meson test -C /build --no-rebuild --print-errorlogs -t 10 sim \
                $(meson test -C /build --no-rebuild --suite fuzz --list | sed 's/.* //' | grep -v '^fuzz_policy$')
        qemu-aarch64-static /build/server/statestored --version
}

case $platform in
clang)
        . server/build_directory.sh
        install_packages $packages_build $packages_fuzz libcriterion-dev git python3
        (export CC=clang && set_up_build "$PWD/build/clang" -Dwerror=true)
        ninja -C build/clang --quiet
        meson test -C build/clang --no-rebuild --print-errorlogs
        ;;
in-debian)
        platform=$2
        build_in_debian
        ;;
trixie | i386 | arm64)
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        suite=bookworm
        [ "$platform" != trixie ] || suite=trixie
        architecture=amd64
        personality=linux64
        [ "$platform" != i386 ] || { architecture=i386 && personality=linux32; }
        make_debian_root "$suite" "$scratch/root" "$architecture"
        in_debian_root "$scratch/root" "$personality" sh /src/tests/platforms.sh in-debian "$platform"
        ;;
*)
        echo "usage: sh tests/platforms.sh clang | trixie | i386 | arm64" >&2
        exit 2
        ;;
esac
