#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: make.sh VERSION TABLE PAGE
#
# Prints the manual page, with lists from the table. Disables hyphenation, so that names can be copied: the request .nh that
# scdoc writes is in effect only until the next paragraph.

set -eu

page=$(awk -v version="$1" -f "$(dirname "$0")/lists.awk" "$2" "$3")
printf '%s\n' "$page" | scdoc | sed 's/^\.nh$/&\n.nr HY 0/'
