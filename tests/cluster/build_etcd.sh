#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds etcd and etcdctl of a version, from the modules of its release. Needs Go: https://go.dev/dl.
#
#   sh tests/cluster/build_etcd.sh v3.6.16 DIRECTORY

set -eu

version=$1
mkdir -p "$2"
directory=$(cd "$2" && pwd)

# "go install" refuses these modules, because they replace others.
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
cd "$source"
mkdir etcd etcdctl
cat >etcd/main.go <<'END'
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
END
cat >etcdctl/main.go <<'END'
package main

import "go.etcd.io/etcd/etcdctl/v3/ctlv3"

func main() { ctlv3.MustStart() }
END
go mod init build
go get "go.etcd.io/etcd/server/v3@$version" "go.etcd.io/etcd/etcdctl/v3@$version"
go mod tidy
go build -o "$directory" ./etcd ./etcdctl
