#!/usr/bin/env python3
"""Runs ctest with the given arguments, and shows at the end again what each test that failed printed.

That stands among thousands of lines, and of a long log often only the end is kept. Read from a file that
only this run of ctest writes: any ctest in the same build folder overwrites the logs there, and one of the
tests lists the others by `ctest --show-only`. Exits as ctest did.
"""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

LINES = 100  # shown of each, from its end
NO_LIMIT = "1000000000"  # bytes that ctest keeps of a test that failed; by default it cuts the end off


def has_failed(case):
    """A test that is not run has failed, unless it says that it was skipped or is disabled."""
    skipped = case.find("skipped")
    if skipped is None:
        return case.get("status") == "fail"
    return not skipped.get("message", "").startswith(("SKIP_", "Disabled"))


def main():
    with tempfile.TemporaryDirectory(prefix="weir-tests-") as folder:
        results = pathlib.Path(folder) / "results.xml"
        code = subprocess.run(["ctest", *sys.argv[1:], "--test-output-size-failed", NO_LIMIT,
                               "--output-junit", str(results)], check=False).returncode
        if code != 0 and results.exists():
            for case in filter(has_failed, xml.etree.ElementTree.parse(results).iter("testcase")):
                printed = (case.findtext("system-out") or "").splitlines()
                print("\n".join([f"\n-- {case.get('name')} printed:", *printed[-LINES:]]), flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
