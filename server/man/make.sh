#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: make.sh VERSION TABLE PAGE: prints the manual page, for man, with the lists of the table. Names are there to be
# copied, so nothing is hyphenated: groff's .nh alone lasts until the next paragraph.

set -eu

page=$(awk -v version="$1" -f "$(dirname "$0")/lists.awk" "$2" "$3")
printf '%s\n' "$page" | scdoc | sed 's/^\.nh$/&\n.nr HY 0/'
