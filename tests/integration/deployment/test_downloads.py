# SPDX-License-Identifier: Apache-2.0
"""Tests whose packages cannot be downloaded are skipped, and fail in CI."""

import pytest

from support.downloads import require_program, unavailable


@pytest.fixture(params=[None, "", "true"])
def outcome(request, monkeypatch):
    """The expected outcome for this value of the variable CI."""
    monkeypatch.delenv("CI", raising=False)
    if request.param is not None:
        monkeypatch.setenv("CI", request.param)
    return pytest.fail.Exception if request.param else pytest.skip.Exception


def test_missing_packages_skip_a_test_and_fail_it_in_ci(outcome):
    with pytest.raises(outcome, match="no mirror"):
        unavailable("no mirror")


def test_a_missing_program_skips_a_test_and_fails_it_in_ci(outcome):
    require_program("sh")
    with pytest.raises(outcome, match="no-such-program is not installed"):
        require_program("no-such-program")
