#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For meson install: copies FILE to $DESTDIR/DESTINATION, unless that file exists: an administrator may have edited it.
#
# usage: install_once.sh FILE DESTINATION

set -eu

destination=${DESTDIR:-}$2
[ -e "$destination" ] || install -D -m 644 "$1" "$destination"
