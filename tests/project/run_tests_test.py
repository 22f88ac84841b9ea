#!/usr/bin/env python3
"""Tests that tools/run_tests.py shows what failed, on a small project."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# "Lists" is a ctest in the same build folder, which overwrites the logs of the run that it is part of.
PROJECT = r"""
cmake_minimum_required(VERSION 3.22)
project(small NONE)
enable_testing()
function(small name command)
  add_test(NAME "${name}" COMMAND sh -c "${command}")
endfunction()
small(Passes "echo not shown")
small(Skips "echo nor this; exit 77")
set_tests_properties(Skips PROPERTIES SKIP_RETURN_CODE 77)
small("Pages.Commands:docs/a.md" "echo the page is wrong; exit 1")
small("Suite/Of.Hangs/0" "echo before the hang; exec sleep 600")
set_tests_properties("Suite/Of.Hangs/0" PROPERTIES TIMEOUT 1)
small(Dies "printf '\\033[31mlast \\377 words'; kill -9 $$")
small(Long "seq 150000; exit 1")
add_test(NAME Missing COMMAND "/nonexistent/program")
add_test(NAME Lists COMMAND "${CMAKE_CTEST_COMMAND}" --test-dir . --show-only)
set_tests_properties(Lists PROPERTIES DEPENDS "Passes;Skips;Pages.Commands:docs/a.md;Suite/Of.Hangs/0;Dies;Long;Missing")
"""


class RunTests(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-run-tests-")
        self.addCleanup(self.folder.cleanup)
        source = pathlib.Path(self.folder.name)
        (source / "CMakeLists.txt").write_text(PROJECT)
        subprocess.run(["cmake", "-S", source, "-B", source / "build"], check=True, capture_output=True)

    def run_tests(self, *given):
        command = [sys.executable, "-B", ROOT / "tools/run_tests.py", "--test-dir", f"{self.folder.name}/build", *given]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        _, *shown = done.stdout.split("\n-- ")
        return done.returncode, dict(part.split(" printed:\n", 1) for part in shown)

    def test_each_that_failed_is_shown_with_what_it_printed(self):
        code, shown = self.run_tests("-j4")
        self.assertNotEqual(code, 0)
        self.assertEqual(set(shown), {"Pages.Commands:docs/a.md", "Suite/Of.Hangs/0", "Dies", "Long", "Missing"})
        self.assertEqual(shown["Pages.Commands:docs/a.md"], "the page is wrong\n")
        self.assertEqual(shown["Suite/Of.Hangs/0"], "before the hang\n")
        self.assertIn("words", shown["Dies"])
        self.assertEqual(shown["Long"].split(), [str(i) for i in range(149901, 150001)], "the end of a long one")
        self.assertIn("/nonexistent/program", shown["Missing"])

    def test_nothing_is_shown_where_none_failed(self):
        self.assertEqual(self.run_tests("-R", "Passes|Skips"), (0, {}))


if __name__ == "__main__":
    unittest.main()
