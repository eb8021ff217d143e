#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages statestored, statestorectl and mosquitto-statestore in build/packages, or in $PACKAGES. The same
# source files make the same bytes in every folder.
#
#   sh conf/package.sh                  for this machine, which must be Debian or a relative of it
#   sh conf/package.sh --arch arm64     cross-built
#   sh conf/package.sh --suite trixie   for another version of Debian
#   sh conf/package.sh --tar            also an archive of the packages' files, for systems without dpkg
#
# Missing build dependencies are installed. --arch and --suite build in a temporary installation of Debian, which requires
# root.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. conf/debian_root.sh

arch=
suite=
archive=
while [ $# -gt 0 ]; do
        case $1 in
        --arch) arch=$2 && shift ;;
        --suite) suite=$2 && shift ;;
        --tar) archive=yes ;;
        *)
                echo "usage: sh conf/package.sh [--arch ARCH] [--suite SUITE] [--tar]" >&2
                exit 2
                ;;
        esac
        shift
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' conf/debian/changelog)
source=$scratch/source/statestored-$version
packages=${PACKAGES:-$PWD/build/packages}
mkdir -p "$source" "$packages"

# dpkg requires debian/ in the top folder.
git ls-files -z --cached --others --exclude-standard meson.build meson_options.txt LICENSE common server conf |
        xargs -0 sh -c 'for file; do [ ! -e "$file" ] || printf "%s\0" "$file"; done' sh |
        tar -c --null -T - | tar -x -C "$source"
cp -r "$source/conf/debian" "$source/debian"

if [ -z "$arch$suite" ]; then
        arch=$(dpkg --print-architecture)
        install_packages debhelper dpkg-dev
        (cd "$source" && build_packages "$arch") >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2 && exit 1; }
else
        arch=${arch:-$(dpkg --print-architecture)}
        make_debian_root "${suite:-bookworm}" "$scratch/root"
        cp -r "$scratch/source" "$scratch/root/"
        in_debian_root "$scratch/root" sh -eu -c '
                cd "/source/$1"
                . server/packages.sh
                . conf/debian_root.sh
                [ "$2" = "$(dpkg --print-architecture)" ] || dpkg --add-architecture "$2"
                install_packages debhelper dpkg-dev $([ "$2" = "$(dpkg --print-architecture)" ] || echo "crossbuild-essential-$2")
                build_packages "$2"' sh "statestored-$version" "$arch" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2 && exit 1; }
        mv "$scratch/root/source/"*.deb "$scratch/source/"
fi

for package in statestored statestorectl mosquitto-statestore; do
        mv "$scratch/source/${package}_${version}_$arch.deb" "$packages/"
        echo "$packages/${package}_${version}_$arch.deb"
done

[ -n "$archive" ] || exit 0
tree=statestored-$version-$arch
mkdir "$scratch/$tree"
for package in statestored statestorectl mosquitto-statestore; do
        dpkg-deb --extract "$packages/${package}_${version}_$arch.deb" "$scratch/$tree"
done
# Elsewhere /lib is a link to usr/lib, which a folder lib of the archive could replace.
(cd "$scratch/$tree" && if [ -d lib ]; then cp -a lib usr/ && rm -r lib && touch -r usr .; fi)
tar -c -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner "$tree" | gzip -9n >"$packages/$tree.tar.gz"
echo "$packages/$tree.tar.gz"
