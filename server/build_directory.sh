# SPDX-License-Identifier: Apache-2.0
#
# Functions that set up a build directory of this source tree. Sourced by run.sh and the scripts in tests/.

# set_up_build DIRECTORY OPTION...: run meson setup with the options, unless the directory is set up. Meson writes the paths
# of the source tree and of the directory into the directory. If the directory was copied with its source tree (cp -r), these
# are the original paths, and meson would run there. So delete what meson and ninja have written, except for the files that
# they have built. A link to a directory is no copy.
set_up_build() {
        build_directory=$1
        shift
        if [ -f "$build_directory/build.ninja" ]; then
                set_up_as=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["directories"]["build"])' \
                        "$build_directory/meson-info/meson-info.json") || set_up_as=
                [ "$set_up_as" != "$(cd "$build_directory" && pwd -P)" ] || return 0
                (cd "$build_directory" && rm -rf build.ninja meson-info meson-private .ninja_log .ninja_deps)
        fi
        meson setup "$build_directory" "$@" >/dev/null
}

# build_to_measure: build the programs that the benchmarks and the soak test measure, and export STATESTORE_BUILD.
build_to_measure() {
        STATESTORE_BUILD=$PWD/build/bench
        export STATESTORE_BUILD
        set_up_build "$STATESTORE_BUILD" --buildtype=release -Db_lto=true -Dtests=false -Dbench=true
        ninja -C "$STATESTORE_BUILD" --quiet
}
