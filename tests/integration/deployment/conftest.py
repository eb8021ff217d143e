# SPDX-License-Identifier: Apache-2.0

import os
import shutil

import pytest

from support import debian
from support.double import running_double
from support.downloads import require_program, unavailable
from support.examples import DOWNLOADS, EXAMPLES, REASON_MAX, download, run
from support.images import ARCHITECTURE
from support.process import BUILD


@pytest.fixture
def double(tmp_path):
    """A running test double, as a CI job has it beside the tests."""
    with running_double(tmp_path, "--control") as double:
        yield double


@pytest.fixture(scope="session")
def copy_of(tmp_path_factory):
    """The example's folder, copied once, with its packages. The tests are skipped if these cannot be downloaded."""
    copies = {}
    failures = {}

    def copy(language):
        copies[language] = tmp_path_factory.mktemp("examples") / language
        shutil.copytree(EXAMPLES / language, copies[language],
                        ignore=shutil.ignore_patterns("node_modules", "__pycache__", "results.*"))
        command = DOWNLOADS.get(language)
        failures[language] = download(command, copies[language]) if command else None

    def copy_of(language):
        if language not in copies:
            copy(language)
        if failures[language]:
            unavailable(failures[language])
        for results in copies[language].glob("results.*"):
            results.unlink()
        return copies[language]

    return copy_of


@pytest.fixture(scope="session")
def rust_example():
    """The program of the example with the published Rust client. Compiling its 157 crates takes minutes, so tests with it run
    only if the variable STATESTORE_TEST_RUST is set. They are compiled once for a build directory."""
    if not os.environ.get("STATESTORE_TEST_RUST"):
        pytest.skip("STATESTORE_TEST_RUST is not set: compiling the published Rust client takes minutes")
    require_program("cargo")
    target = BUILD / "example-rust"
    for arguments in ["fetch", "--locked"], ["build", "--locked", "--offline", "--target-dir", target]:
        ended = run(["cargo", *arguments], EXAMPLES / "rust")
        if ended.returncode != 0 and arguments[0] == "fetch":
            unavailable(f"cargo fetch: {' '.join(ended.stderr.split())[:REASON_MAX]}")
        assert ended.returncode == 0, ended.stderr
    return target / "debug" / "statestore-example"


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """The Debian packages of this source tree: files by name. Tests that use them are in one xdist_group."""
    return debian.build(tmp_path_factory.mktemp("packages"), *ARCHITECTURE,
                        *(["--suite", debian.SUITE] if debian.SUITE != "bookworm" else []))
