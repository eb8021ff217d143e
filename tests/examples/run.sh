#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# usage: run.sh [LANGUAGE]...
#
# Runs the tests of the example clients, by default of all: python, node and go. They start statestored, which must be in PATH,
# or use the double in STATESTORE_URL. Missing packages are installed: those of Python in python/.venv, those of Node in
# node/node_modules. The exit status is 1 if a test fails.

set -eu

here=$(cd "$(dirname "$0")" && pwd)

run_python() {
        python=python3
        if ! "$python" -c 'import paho.mqtt, pytest' 2>/dev/null; then
                python=.venv/bin/python3
                [ -x "$python" ] || python3 -m venv .venv
                "$python" -m pip install --quiet -r requirements.txt
        fi
        "$python" -m pytest -p no:cacheprovider
}

run_node() {
        [ -d node_modules ] || npm ci --ignore-scripts --no-audit --no-fund
        npm test
}

run_go() {
        go test -count=1 .
}

[ $# -gt 0 ] || set -- python node go
status=0
for language; do
        (cd "$here/$language" && "run_$language") || status=1
done
exit $status
