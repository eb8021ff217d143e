#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For one SET of an existing key, counts the function calls, the source files of these functions, and how often the
# key is hashed. The code is compiled without optimization, and runs with the memory storage and without a broker.
# Exits with 1 above the limits.
#
# usage: request_path.sh SOURCE_ROOT [--list]        --list prints each call with its file

set -eu

N_CALLS_MAX=194
N_FILES_MAX=24
N_HASHES=1

root=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cd "$root"
${CC:-cc} -std=gnu11 -O0 -g -no-pie -finstrument-functions -D_GNU_SOURCE -DSTATESTORED_VERSION='"0"' \
        -Icommon -Iserver -o "$dir/request_path" tests/support/request_path.c \
        common/base/*.c common/protocol/*.c server/policy/*.c server/engine/*.c server/codec/*.c \
        server/records/*.c server/storage/*.c server/pipeline/*.c -lsodium -ljansson
"$dir/request_path" >"$dir/addresses"
addr2line -f -e "$dir/request_path" <"$dir/addresses" | paste - - | sed "s|$PWD/||; s|:[0-9]*.*||" >"$dir/calls"

[ "${2:-}" != --list ] || cat "$dir/calls"
n_calls=$(wc -l <"$dir/calls")
n_files=$(cut -f2 "$dir/calls" | sort -u | wc -l)
n_hashes=$(grep -c '^hash_bytes' "$dir/calls" || true)
echo "calls: $n_calls, at most $N_CALLS_MAX; files: $n_files, at most $N_FILES_MAX; hashes of the key: $n_hashes"
[ "$n_calls" -gt 0 ] && [ "$n_calls" -le $N_CALLS_MAX ] && [ "$n_files" -le $N_FILES_MAX ] &&
        [ "$n_hashes" -eq $N_HASHES ]
