#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes a release in build/release-VERSION: packages and archives of Debian 12 for each architecture, images as archives of Docker, a list of all
# software in them (SPDX 2.3), and checksums.
#
#   sh conf/release.sh VERSION
#
# The tree must be clean, and meson.build and the changelog must have this version. ARCHITECTURES, by default "amd64 arm64", may
# name one. This requires root. An architecture other than this machine's also requires binfmt_misc in the kernel: an emulator
# runs the installation of packages in its images.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. conf/debian_root.sh

[ $# = 1 ] || { echo "usage: sh conf/release.sh VERSION" >&2 && exit 2; }
version=$1
native=$(dpkg --print-architecture)
architectures=${ARCHITECTURES:-amd64 arm64}
release=$PWD/build/release-$version

fail() {
        echo "release.sh: $1" >&2
        exit 1
}

[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed: git status"
grep -q "^ *version: '$version',\$" meson.build || fail "meson.build has another version than $version"
head -n 1 conf/debian/changelog | grep -qF "statestored ($version) " || fail "conf/debian/changelog begins with another version than $version"
! head -n 1 conf/debian/changelog | grep -q UNRELEASED || fail "conf/debian/changelog says UNRELEASED: name the suite and the date of the release"

install_packages buildah dpkg-dev lintian python3
for arch in $architectures; do
        [ "$arch" = "$native" ] || let_programs_run "$arch" ||
                fail "no program of $arch runs here: this needs root and binfmt_misc in the kernel. ARCHITECTURES=$native leaves $arch out"
done
seconds=$(dpkg-parsechangelog -l conf/debian/changelog -S Timestamp)
rm -rf "$release"
mkdir -p "$release"
for arch in $architectures; do
        PACKAGES=$release sh conf/package.sh --suite bookworm --arch "$arch" --tar
        lintian --fail-on error,warning "$release/"*"_$arch.deb"
        for target in statestored mosquitto double; do
                name=$target
                [ "$target" = statestored ] || name=statestored-$target
                file=$release/$name-image-$version-$arch
                buildah bud --isolation chroot --format docker --platform "linux/$arch" --timestamp "$seconds" \
                        --file docker/Dockerfile --target "$target" --tag "$name:$version-$arch" "$release"
                buildah push --quiet "$name:$version-$arch" "docker-archive:$file.tar:$name:$version"
                gzip -n "$file.tar"
                container=$(buildah from --arch "$arch" --pull-never "$name:$version-$arch")
                root=$(buildah mount "$container")
                /usr/bin/python3 conf/sbom.py "${file##*/}" "$seconds" "$root/var/lib/dpkg/status" >"$file.spdx.json"
                buildah rm "$container" >/dev/null
        done
done
(cd "$release" && sha256sum -- * >"../SHA256SUMS" && mv ../SHA256SUMS .)
echo "$release"
