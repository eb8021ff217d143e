# SPDX-License-Identifier: Apache-2.0
#
# Functions for a temporary installation of Debian, for building packages, and for running programs of another architecture.
# Sourced by package.sh, release.sh, tests/packages.sh and tests/platforms.sh.

# make_debian_root SUITE DIRECTORY [ARCHITECTURE]: install Debian, from the mirror of this machine, into the directory.
make_debian_root() {
        install_packages debootstrap util-linux
        mirror=$(apt-cache policy | sed -n 's,^ *[0-9]* \(\S*\) [a-z]*/main \S* Packages.*,\1,p' | grep -v security | head -n 1)
        debootstrap --variant=minbase --arch="${3:-$(dpkg --print-architecture)}" "$1" "$2" "$mirror" >"$2.log" ||
                { cat "$2.log" >&2 && return 1; }
        mkdir "$2/src"
        echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/unsafe-io"
        cp /etc/resolv.conf "$2/etc/"
}

# in_debian_root DIRECTORY COMMAND...: run a command in the installation, where the current folder is /src. The mounts end
# with the command.
in_debian_root() {
        unshare --mount --pid --fork --kill-child sh -eu -c '
                root=$1
                shift
                mount -t proc proc "$root/proc"
                mount --rbind /dev "$root/dev"
                mount --bind . "$root/src"
                export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
                exec chroot "$root" "$@"' sh "$@"
}

# build_packages ARCHITECTURE: build the packages of the current folder; install missing build dependencies.
build_packages() {
        export DEB_BUILD_OPTIONS="${DEB_BUILD_OPTIONS:-nocheck noautodbgsym}"
        profiles=nocheck
        [ "$1" = "$(dpkg --print-architecture)" ] || profiles=nocheck,cross
        dpkg-checkbuilddeps -a "$1" -P "$profiles" 2>/dev/null || {
                as_root=
                [ "$(id -u)" = 0 ] || as_root=sudo
                $as_root apt-get build-dep -y --no-install-recommends -a "$1" -P "$profiles" ./
        }
        dpkg-buildpackage --build=binary --no-sign --host-arch "$1" -P"$profiles"
}

# let_programs_run ARCHITECTURE: register an emulator of the architecture in the kernel, as systemd does at boot. It also runs
# the programs in containers. Requires root.
let_programs_run() {
        install_packages dpkg-dev mount qemu-user-static
        emulator=qemu-$(dpkg-architecture -A "$1" -q DEB_TARGET_GNU_CPU)
        registered=/proc/sys/fs/binfmt_misc
        [ -e $registered/register ] || mount -t binfmt_misc binfmt_misc $registered || return
        [ -e "$registered/$emulator" ] || cat "/usr/lib/binfmt.d/$emulator.conf" >$registered/register
}
