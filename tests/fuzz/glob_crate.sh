#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Compares the store's glob patterns with the Rust crate `glob`, which the published test of SCAN names. Fetches the newest
# release of the crate; needs cargo, and a build in build/debug.
#
#   sh tests/fuzz/glob_crate.sh 1000000 7     this number of generated patterns and keys, by this random seed
#   sh tests/fuzz/glob_crate.sh --write       write tests/unit/base/glob_cases.txt, which every test run compares

set -eu

cd "$(dirname "$0")/../.."
build=$PWD/build/glob_crate
export LC_ALL=C PYTHONIOENCODING=utf-8

mkdir -p "$build"
cp -R tests/support/glob_crate/. "$build"
cargo update --quiet --manifest-path "$build/Cargo.toml"
cargo build --quiet --release --manifest-path "$build/Cargo.toml"
echo "glob_crate.sh: compared with $(cargo tree --manifest-path "$build/Cargo.toml" --depth 1 --prefix none | sed -n 2p)" >&2

# verdicts SEED COUNT
verdicts() {
        python3 tests/support/glob_pairs.py "$1" "$2" | sort -u | "$build/target/release/glob_crate"
}

if [ "${1-}" = --write ]; then
        verdicts 1 6000 > tests/unit/base/glob_cases.txt
        exit
fi

verdicts "${2:-1}" "${1:-100000}" > "$build/cases.txt"
for verdict in match no invalid; do
        echo "glob_crate.sh: $verdict=$(grep -c "	$verdict\$" "$build/cases.txt")" >&2
done
GLOB_CASES=$build/cases.txt build/debug/tests/test_glob --filter glob/agrees_with_the_crate
