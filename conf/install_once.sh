#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# For meson install: puts FILE at DESTINATION, below $DESTDIR, unless there is one, which is somebody's by now.
#
# usage: install_once.sh FILE DESTINATION

set -eu

destination=${DESTDIR:-}$2
[ -e "$destination" ] || install -D -m 644 "$1" "$destination"
