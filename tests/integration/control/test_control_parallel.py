# SPDX-License-Identifier: Apache-2.0
"""statestored --control: a double that the tests of two processes share."""

import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from support.double import running_double
from support.examples import EXAMPLES, run

pytestmark = pytest.mark.not_sanitized("the other tests of --control send the same requests")

N_TESTS = 20


def test_two_processes_of_pytest_share_a_double(tmp_path):
    """The tests of parallel_tests.py meet at each step: those with the same number run at the same time."""
    shutil.copy(Path(__file__).with_name("parallel_tests.py"), tmp_path / "test_parallel.py")
    shutil.copy(EXAMPLES / "python" / "statestore.py", tmp_path)
    with running_double(tmp_path, "--control") as double:
        url = double.url
        ended = run([sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "--rootdir=.",
                     "--junitxml=results.xml"], tmp_path, STATESTORE_URL=url)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert len(list(ElementTree.parse(tmp_path / "results.xml").iter("testcase"))) == N_TESTS
