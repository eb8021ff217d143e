# SPDX-License-Identifier: Apache-2.0
#
# Lists of Debian packages, and a function that installs them. Sourced by run.sh, and the scripts in conf/ and tests/.

packages_build="gcc libc6-dev libcurl4-openssl-dev libjansson-dev libmicrohttpd-dev libmosquitto-dev libprotobuf-c-dev libsodium-dev libsqlite3-dev libssl-dev libsystemd-dev libuv1-dev libxxhash-dev meson mosquitto-dev ninja-build pkg-config protobuf-c-compiler scdoc uthash-dev"
packages_run="mosquitto"
packages_cluster="curl etcd-client etcd-server haproxy"
packages_test="$packages_cluster buildah clang-format debhelper debootstrap dpkg-dev git iproute2 keepalived libcriterion-dev lintian man-db mandoc openssl prometheus python3 python3-flake8 python3-paho-mqtt python3-pip python3-pytest python3-pytest-xdist python3-yaml shellcheck sqlite3 systemd systemd-container valgrind zsh"
packages_bench="python3 python3-paho-mqtt python3-pytest redis-server redis-tools strace"
packages_soak="python3 python3-paho-mqtt python3-pytest"
packages_published="iproute2 jq openssl python3 python3-paho-mqtt util-linux"
packages_fuzz="clang libclang-rt-14-dev"

# Languages of the examples, and kubectl, unless installed by other means.
command -v npm >/dev/null || packages_test="$packages_test nodejs npm"
command -v go >/dev/null || packages_test="$packages_test golang-go"
command -v kubectl >/dev/null || packages_test="$packages_test kubernetes-client"

# Used by commands in the documents.
packages_test="$packages_test jq"

# The page of the console in a browser.
packages_test="$packages_test chromium chromium-driver python3-selenium"

# install_packages NAME...: install the packages that are missing.
install_packages() {
        missing=
        for package in "$@"; do
                case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) in
                installed) ;;
                *) missing="$missing $package" ;;
                esac
        done
        [ -n "$missing" ] || return 0

        echo "installing:$missing" >&2
        as_root=
        [ "$(id -u)" = 0 ] || as_root=sudo
        if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
                echo "cannot install missing packages without root or sudo; install them first:$missing" >&2
                exit 1
        fi

        log=$(mktemp)
        if ! $as_root sh -c "$install_quietly" install "$missing" >"$log" 2>&1; then
                cat "$log" >&2
                exit 1
        fi
        rm -f "$log"
}

# Do not start services during the installation: the mosquitto service would take port 1883.
install_quietly='
        policy=/usr/sbin/policy-rc.d
        if [ ! -e $policy ]; then
                trap "rm -f $policy" EXIT
                printf "#!/bin/sh\nexit 101\n" >$policy
                chmod +x $policy
        fi
        export DEBIAN_FRONTEND=noninteractive
        apt-get update && apt-get install -y --no-install-recommends $1'
