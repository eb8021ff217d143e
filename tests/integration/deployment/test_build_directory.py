# SPDX-License-Identifier: Apache-2.0
"""The function that sets up a build directory for the scripts: server/build_directory.sh."""

import shutil
import subprocess

import pytest

from support.process import PATIENCE, REPOSITORY

PROJECT = """\
project('sample')
custom_target(input: 'text', output: 'built', command: ['cp', '@INPUT@', '@OUTPUT@'], build_by_default: true)
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree whose build directory is set up and built."""
    tree = tmp_path / "original ü"
    tree.mkdir()
    (tree / "meson.build").write_text(PROJECT)
    (tree / "text").write_text("original")
    build(tree)
    return tree


def build(tree):
    """Build as the scripts do. Return what was built."""
    subprocess.run(["sh", "-euc", '. "$1"; set_up_build build; ninja -C build --quiet', "sh",
                    REPOSITORY / "server" / "build_directory.sh"], cwd=tree, check=True, timeout=PATIENCE)
    return (tree / "build" / "built").read_text()


def test_a_build_directory_is_set_up_once(tree):
    marker = tree / "build" / "meson-private" / "marker"
    marker.touch()

    (tree / "text").write_text("changed")
    assert build(tree) == "changed"
    assert marker.exists()


def test_a_linked_build_directory_is_not_set_up_again(tree):
    """The tests of the documents run the scripts in a folder with links."""
    folder = tree.parent / "folder"
    folder.mkdir()
    (folder / "build").symlink_to(tree / "build")
    marker = tree / "build" / "meson-private" / "marker"
    marker.touch()

    assert build(folder) == "original"

    assert marker.exists()


def test_a_copied_build_directory_builds_the_copy(tree):
    (tree / "build" / "corpus").touch()
    copy = tree.parent / "copy"
    shutil.copytree(tree, copy, copy_function=shutil.copy)
    (copy / "text").write_text("copy")
    (copy / "meson.build").touch()  # newer than build.ninja, so ninja runs meson
    before = {path: path.stat().st_mtime_ns for path in tree.rglob("*")}

    assert build(copy) == "copy"

    assert {path: path.stat().st_mtime_ns for path in tree.rglob("*")} == before, "nothing was run in the original tree"
    assert (copy / "build" / "corpus").exists(), "other files stay"
