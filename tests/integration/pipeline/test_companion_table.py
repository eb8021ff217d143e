# SPDX-License-Identifier: Apache-2.0
"""Each line of the table "Who can do what" in common/protocol/companion.h names tests, and each of these tests exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

HEADER = (ROOT / "common" / "protocol" / "companion.h").read_text()
TABLE = HEADER[HEADER.index("* Who can do what"):HEADER.index("*/", HEADER.index("* Who can do what"))]
FILES = dict(re.findall(r"\(([A-Z])\) (test_\w+\.py)", TABLE))
LINES = re.findall(r"^ \* - (.*?)(?=^ \* -|^ \*\n)", TABLE, re.MULTILINE | re.DOTALL)


def named_in(line):
    """Return (file, test) for each test that a line of the table names."""
    found = []
    for letter, names in re.findall(r"\(([A-Z])\) ([^(]*)", line):
        found += [(FILES[letter], name) for name in re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+){2,}\b", names)]
    return found


def test_the_table_has_been_read():
    assert len(FILES) > 8 and len(LINES) > 25
    assert {file for line in LINES for file, _ in named_in(line)} == set(FILES.values())


@pytest.mark.parametrize("line", LINES, ids=lambda line: re.sub(r"\W+", " ", line)[:40])
def test_each_line_names_tests_that_exist(line):
    tests = named_in(line)
    assert tests, "the line names no test"
    for file, name in tests:
        path, = (ROOT / "tests" / "integration").glob(f"*/{file}")
        assert re.search(rf"^def test_{name}\(", path.read_text(), re.MULTILINE), f"{file} has no test_{name}"
