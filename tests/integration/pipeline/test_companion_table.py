# SPDX-License-Identifier: Apache-2.0
"""Each line of "Who can do what" in common/protocol/THREATS.md names tests, and each of these tests exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

THREATS = (ROOT / "common" / "protocol" / "THREATS.md").read_text()
TABLE = THREATS[THREATS.index("\n### "):THREATS.index("\n## Without authentication")]
LINES = re.findall(r"^- (.*?)(?=^- |^#|\Z)", TABLE, re.MULTILINE | re.DOTALL)


def names_in(files, pattern):
    return [name for path in (ROOT / "tests").glob(files) for name in re.findall(pattern, path.read_text(), re.MULTILINE)]


DEFINED = names_in("integration/*/test_*.py", r"^def test_(\w+)\(") + names_in("unit/*/test_*.c", r"^Test\(\w+, (\w+)")


def test_the_table_has_been_read():
    assert len(LINES) > 40


@pytest.mark.parametrize("line", LINES, ids=lambda line: re.sub(r"\W+", " ", line)[:40])
def test_each_line_names_tests_that_exist(line):
    named = re.search(r"\.\n  Tests?: ((?:`\w+`(?:,\s+)?)+)\.\n", line)
    assert named, "the line names no test"
    for name in re.findall(r"\w+", named[1]):
        assert DEFINED.count(name) == 1, f"{DEFINED.count(name)} tests have the name {name}"
