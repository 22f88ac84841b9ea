"""Tests the runner of the mutants, on a fake project with fakes of ninja and ctest."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import run

LIST = """\
mutant: one
loses: this
file: a.txt
build: unit
tests: ^A
 first
-second
+{become}
"""
CMAKE = """\
weir_test(NAME unit SOURCES a.cpp)
if(TRUE)
  weir_test(
    A_PROCESS_EACH
    NAME process_test
    SOURCES b.cpp)
endif()
weir_program(NAME run-it SOURCES c.cpp)
add_executable(alone d.cpp)
add_test(NAME No.program COMMAND unit)
# weir_test(NAME gone)
"""
# Like the tools, as far as the runner looks: `broken` does not compile; a test fails for `bad`, and
# takes too long for `slow`.
NINJA = '#!/bin/sh\n! grep -q broken "$2/../../a.txt"\n'
CTEST = """\
#!/bin/sh
grep -q 'bad\\|slow' "$2/../../a.txt" || exit 0
grep -q slow "$2/../../a.txt" && how=Timeout || how=Failed
echo '    Start 7: A.Test'
echo "1/1 Test #7: A.Test ...........***$how    0.01 sec"
exit 8
"""


class Runner(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        base = pathlib.Path(scratch.name)
        self.root, self.lists, self.copy = base / "root", base / "lists", base / "copy"
        tools = base / "tools"
        for folder in (self.root, self.lists, tools):
            folder.mkdir()
        for name, text in (("ninja", NINJA), ("ctest", CTEST), ("cmake", "#!/bin/sh\nmkdir -p build/mutants\n")):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        (self.root / "a.txt").write_text("first\nsecond\nthird\n")
        (self.root / "tests").mkdir()
        (self.root / "tests/CMakeLists.txt").write_text(CMAKE)
        subprocess.run(["git", "init", "-q", self.root], check=True)
        path, root = os.environ["PATH"], run.ROOT
        self.addCleanup(lambda: (os.environ.update(PATH=path), setattr(run, "ROOT", root)))
        os.environ["PATH"] = f"{tools}:{path}"
        run.ROOT = self.root

    def run_with(self, text, *words):
        """Returns the exit code and the output."""
        (self.lists / "all.mutants").write_text(text)
        out = io.StringIO()
        sys.argv = ["run.py", "--lists", str(self.lists), "--copy", str(self.copy), *words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                code = run.main()
            except SystemExit as end:
                code, _ = 2, out.write(str(end))
        return code, out.getvalue()

    def test_says_who_noticed_and_puts_the_lines_back(self):
        code, text = self.run_with(LIST.format(become="bad"))
        self.assertEqual(code, 0)
        self.assertRegex(text, r"one: noticed by A.Test, \d+ s\n\n1 of 1 noticed \(100%\)")
        self.assertEqual((self.copy / "a.txt").read_text(), "first\nsecond\nthird\n")

    def test_says_that_a_test_took_too_long(self):
        code, text = self.run_with(LIST.format(become="slow"))
        self.assertEqual(code, 0)
        self.assertRegex(text, r"one: noticed by A.Test \(took too long\), \d+ s\n\n1 of 1 noticed \(100%\)")

    def test_a_survivor_is_a_failure_and_told_with_what_is_lost(self):
        code, text = self.run_with(LIST.format(become="harmless"))
        self.assertEqual(code, 1)
        self.assertRegex(text, r"one: survived, \d+ s\n\n0 of 1 noticed \(0%\) in .*\n  one \(a.txt\): not explained")
        self.assertIn("a user loses: this", text)

    def test_a_survivor_that_is_explained_may_be_one_of_twenty(self):
        noticed = "".join(LIST.format(become="bad").replace("one", f"n{i}") for i in range(19))
        survivor = LIST.format(become="harmless") + "survives: nobody can see it\n"
        self.assertEqual(self.run_with(noticed + survivor)[0], 0)
        self.assertEqual(self.run_with(noticed + survivor, "one", "n1")[0], 1)

    def test_what_does_not_compile_is_not_noticed(self):
        code, text = self.run_with(LIST.format(become="broken"))
        self.assertEqual(code, 1)
        self.assertIn("one: does not compile", text)

    def test_tests_that_fail_anyway_tell_nothing(self):
        (self.root / "a.txt").write_text("first\nsecond\nbad\n")
        code, text = self.run_with(LIST.format(become="x"))
        self.assertEqual((code, text), (2, "A.Test fails without a fault"))

    def test_lines_that_are_not_there_once_are_refused(self):
        for contents, times in (("first\n", 0), ("first\nsecond\nfirst\nsecond\n", 2)):
            (self.root / "a.txt").write_text(contents)
            code, text = self.run_with(LIST.format(become="bad"), "--check")
            self.assertEqual(code, 1)
            self.assertIn(f"all.mutants:1: one: its lines are {times} times in a.txt", text)

    def test_a_list_that_cannot_be_read_is_refused(self):
        good = LIST.format(become="bad")
        for text, what in ((good + good, "one is there twice"), ("mutter: x\n", "cannot be read"),
                           (good.replace("file: a.txt\n", ""), "lacks file"),
                           (good.replace("a.txt", "b.txt"), "b.txt does not exist"),
                           (good.replace("+bad\n", "+second\n"), "changes nothing")):
            code, said = self.run_with(text, "--check")
            self.assertNotEqual(code, 0)
            self.assertIn(what, said)

    def test_a_program_that_is_not_made_any_more_is_refused(self):
        for name, code in (("unit", 0), ("process_test", 0), ("run-it", 0), ("alone", 0), ("gone", 1), ("No", 1)):
            found, said = self.run_with(LIST.format(become="bad").replace("unit", name), "--check")
            self.assertEqual(found, code, said)
            self.assertEqual(f"all.mutants:1: one: no CMakeLists.txt of tests makes {name}" in said, code == 1, said)

    def test_nobody_elses_folder_is_made_a_copy(self):
        self.copy.mkdir()
        (self.copy / "mine").write_text("x")
        code, text = self.run_with(LIST.format(become="bad"))
        self.assertEqual(code, 2)
        self.assertIn("is not a copy that this made", text)
        self.assertEqual((self.copy / "mine").read_text(), "x")


if __name__ == "__main__":
    unittest.main()
