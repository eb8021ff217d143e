#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of the newest published Rust client (crate azure_iot_operations_services) against a mosquitto and a store that
# are configured as conf/PRODUCTION.md says, and compares what the client sends with tests/support/published.py. Prints how many
# tests have passed. The tests run in their own namespaces: nothing outside build/ changes, and no port is taken.
#
#   sh tests/published.sh
#   SDK=DIRECTORY sh tests/published.sh    also the tests of the Go client, and the command line tool, in a clone of
#                                          https://github.com/Azure/iot-operations-sdks. No package registry has them.
#
# Needs Rust, and Go for the second form: https://rustup.rs, https://go.dev/dl. On Debian 12 the script first installs other
# missing packages. Needs root or sudo.

set -eu

cd "$(dirname "$0")/.."
. server/packages.sh
. server/build_directory.sh

crate=azure_iot_operations_services
rust_tests='state_store_client_test lease_client_tests lock_client_tests'

for program in cargo ${SDK:+go}; do
        if ! command -v $program >/dev/null; then
                echo "published.sh: $program is not installed; https://rustup.rs and https://go.dev/dl say how to install it" >&2
                exit 1
        fi
done
install_packages $packages_build $packages_run $packages_published

STATESTORE_BUILD=$PWD/build/published/store
export STATESTORE_BUILD
set_up_build "$STATESTORE_BUILD" --buildtype=release --prefix=/usr/local -Dtests=false
ninja -C "$STATESTORE_BUILD" --quiet

work=$PWD/build/published
rm -rf "$work/crate" "$work/fetch" "$work/go" "$work/cli"
mkdir -p "$work/fetch/src" "$work/programs"

# "version: 1.5.0-beta1"; in a package that uses another version "version: 1.3.0 (latest 1.5.0-beta1)"
version=$(cd "$work" && cargo info --quiet --color never $crate |
        sed -n 's/^version: \(.* (latest \)\{0,1\}\([^ )]*\).*/\2/p')
[ -n "$version" ] || { echo "published.sh: cargo info has not printed the version of $crate" >&2; exit 1; }

# A package that depends on the crate: cargo downloads it and tells where it is.
printf '[package]\nname = "fetch"\nedition = "2021"\n[dependencies]\n%s = "=%s"\n' $crate "$version" >"$work/fetch/Cargo.toml"
: >"$work/fetch/src/lib.rs"
(cd "$work/fetch" && cargo metadata --quiet --format-version 1) >"$work/fetch/metadata"
manifest=$(jq -er --arg name $crate '.packages[] | select(.name == $name) | .manifest_path' "$work/fetch/metadata")
cp -r "$(dirname "$manifest")" "$work/crate"

# The tests name a broker without TLS and without a user. Let them read the settings from the environment, as programs do.
for test in $rust_tests; do
        sed -i -e 's/MqttConnectionSettingsBuilder::default()/MqttConnectionSettingsBuilder::from_environment().unwrap()/' \
                -e '/^ *\.hostname("localhost")$/d; /^ *\.tcp_port(1883u16)$/d; /^ *\.use_tls(false)$/d' \
                "$work/crate/tests/$test.rs"
done
(cd "$work/crate" && CARGO_TARGET_DIR=$work/target cargo test --quiet --locked --no-run --features state_store,leased_lock \
        $(printf -- '--test %s ' $rust_tests) --message-format=json >built)
jq -r '.executable // empty' "$work/crate/built" >"$work/programs/rust"
# For the row "samples" of tests/cluster.sh.
(cd "$work/crate" && CARGO_TARGET_DIR=$work/target cargo build --quiet --locked --features state_store --example state_store_client)
cp "$work/target/debug/examples/state_store_client" "$work/programs/rust-sample"

if [ -n "${SDK:-}" ]; then
        cp -r "$SDK/go" "$work/go"
        tests=$work/go/test/integration/services
        sed -zi 's/mqtt\.NewSessionClient(\s*mqtt\.RandomClientID(),\s*mqtt\.TCPConnection("localhost", 1883),\s*)/newSessionClient()/g' \
                "$tests"/*_test.go
        cat >"$tests/environment.go" <<'END'
package services

import "github.com/Azure/iot-operations-sdks/go/mqtt"

func newSessionClient() (*mqtt.SessionClient, error) {
	env, err := mqtt.SessionClientConfigFromEnv()
	if err != nil {
		return nil, err
	}
	return mqtt.NewSessionClient(mqtt.RandomClientID(), env.ConnectionProvider, env.SessionClientOptions)
}
END
        (cd "$tests" && go test -c -o "$work/programs/go" .)
        (cd "$work/go/samples/services/statestore" && go build -o "$work/programs/go-sample" .)
        # Without rust-toolchain.toml, which names a version of Rust.
        mkdir "$work/cli"
        cp -r "$SDK"/tools/statestore-cli/Cargo.* "$SDK/tools/statestore-cli/src" "$work/cli"
        (cd "$work/cli" && CARGO_TARGET_DIR=$work/target cargo build --quiet --locked --release)
        cp "$work/target/release/statestore-cli" "$work/programs/cli"
else
        rm -f "$work/programs/go" "$work/programs/go-sample" "$work/programs/cli"
fi

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
echo "crate $crate $version"
exec $as_root env STATESTORE_BUILD="$STATESTORE_BUILD" PATH="$PATH" unshare --net --mount --pid --mount-proc --fork --kill-child \
        /usr/bin/python3 -B tests/published/published.py "$work/programs"
