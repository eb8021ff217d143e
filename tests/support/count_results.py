# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of the test runners and prints one line: N passed, M failed, and K skipped if any were.

usage: count_results.py PASSED FAILED RESULTS...

PASSED and FAILED are the counts of other checks. RESULTS are a build directory, for its unit tests, or the XML file of a run of
pytest. Exits with 1 if a test failed, or if a runner has written no result.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def unit_results(build):
    """Read how each program ended from meson's log, and its failed tests from its TAP file."""
    passed = failed = 0
    for line in (build / "results" / "unit.json").read_text().splitlines():
        test = json.loads(line)
        name = test["name"].split("/")[-1].strip()
        tap = build / "tests" / "tap" / f"{name}.tap"
        lines = tap.read_text().splitlines() if tap.exists() else []
        ok = sum(line.startswith("ok") for line in lines)
        not_ok = sum(line.startswith("not ok") for line in lines)
        if test["result"] != "OK" and not_ok == 0:
            not_ok = 1
        if test["result"] == "OK" and not lines:
            ok = 1
        passed += ok
        failed += not_ok
    return passed, failed, 0


def integration_results(path):
    passed = failed = skipped = 0
    for suite in ElementTree.parse(path).getroot():
        n_failed = int(suite.get("failures")) + int(suite.get("errors"))
        n_skipped = int(suite.get("skipped"))
        failed += n_failed
        skipped += n_skipped
        passed += int(suite.get("tests")) - n_failed - n_skipped
    return passed, failed, skipped


def main():
    passed, failed = int(sys.argv[1]), int(sys.argv[2])
    skipped = 0

    for path in map(pathlib.Path, sys.argv[3:]):
        try:
            read = integration_results if path.suffix == ".xml" else unit_results
            more_passed, more_failed, more_skipped = read(path)
        except (OSError, ElementTree.ParseError) as error:
            print(f"no results: {error}", file=sys.stderr)
            more_passed, more_failed, more_skipped = 0, 1, 0
        passed += more_passed
        failed += more_failed
        skipped += more_skipped

    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
