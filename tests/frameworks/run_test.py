#!/usr/bin/env python3
"""Tests of run.py on programs that need no framework: what becomes of each outcome, in the table and the exit code."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import environment
import matrix
import runtime

HERE = pathlib.Path(__file__).resolve().parent
# Stands for `weir run [--allocator async | --torch WAY] -- PROGRAM...`, and tells the program: UNDER is as what it sets for
# frameworks, WEIR_FAKE as what it sets for itself.
WEIR = """#!/bin/sh
export UNDER=below WEIR_FAKE=1
if [ "$2" = --allocator ]; then UNDER=$3; shift 2; fi
if [ "$2" = --torch ] && [ "$3" = plug ]; then UNDER=plug; fi
if [ "$2" = --torch ]; then shift 2; fi
shift 2
"$@"
code=$?
echo "weir: process 1, a summary" >&2
echo "  device 0: of it" >&2
exit $code
"""
PROGRAM_HEAD = """
import os, sys, time
UNDER = os.environ.get("UNDER", "alone")
def main(features):
    if sys.argv[1] == "--list":
        print("\\n".join(features))
    else:
        features[sys.argv[1]]()
def end(code, text=""):
    print(text, flush=True)
    sys.exit(code)
"""


def ends(process):
    """Whether `process` ends, by a signal that it has been sent, before two minutes are over: a busy machine takes
    its time. It has ended too if its parent has yet to ask for its exit code."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build/tools/weir").mkdir(parents=True)
        weir = self.folder / "build/tools/weir/weir"
        weir.write_text(WEIR)
        weir.chmod(0o755)
        self.page = self.folder / "page.md"
        self.page.write_text(f"before\n{matrix.BEGIN}\nold\n{matrix.END}\nafter\n")

    def run_on(self, features, *words, name="thing"):
        """Runs run.py on a program of these features, each an expression that is called."""
        program = self.folder / f"with_{name}.py"
        lines = "".join(f"    {name!r}: lambda: {body},\n" for name, body in features.items())
        program.write_text(textwrap.dedent(PROGRAM_HEAD) + f"main({{\n{lines}}})\n")
        command = [sys.executable, "-B", HERE / "run.py", "--python", sys.executable, "--programs", self.folder,
                   "--build", self.folder / "build", "--page", self.page, *words]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)

    def test_what_works_in_each_way_is_said_and_the_rest_of_the_page_stays(self):
        done = self.run_on({"a_feature": "end(0, 'same')"})
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.page.read_text()
        self.assertIn("| thing | a feature | works | works | - | works |", page)
        self.assertTrue(page.startswith(f"before\n{matrix.BEGIN}\n"))
        self.assertTrue(page.endswith(f"{matrix.END}\nafter\n"))
        self.assertNotIn("old", page)

    def test_a_feature_that_is_lost_below_a_framework_is_an_error_with_its_reason(self):
        done = self.run_on({"lost": "end(UNDER == 'below', 'it is ' + ('gone' if UNDER == 'below' else 'there'))"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("thing, lost, below: fails: it is gone", done.stderr)
        self.assertIn("| thing | lost | works | fails (1) | - | works |\n\n1. `it is gone`", self.page.read_text())

    def test_a_feature_that_cannot_be_had_below_a_framework_but_alone_is_lost(self):
        self.assertEqual(self.run_on({"lost": "end(77 if UNDER == 'below' else 0)"}).returncode, 1)

    def test_a_feature_that_another_allocator_lacks_is_no_error(self):
        done = self.run_on({"lost": "end(UNDER == 'async', '' if UNDER != 'async' else 'not with it')"})
        self.assertEqual(done.returncode, 0, done.stderr)
        said = "| works | works | - | fails (1) |\n\n1. `not with it`, and so without Weir\n"
        self.assertIn(said, self.page.read_text())

    def test_a_feature_that_weir_loses_with_another_allocator_is_an_error(self):
        lost = "UNDER == 'async' and 'WEIR_FAKE' in os.environ"
        done = self.run_on({"lost": f"end({lost})"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("thing, lost, async: fails", done.stderr)
        self.assertNotIn("without Weir", done.stdout)

    def test_other_output_with_another_allocator_is_an_error_if_weir_is_why(self):
        self.assertEqual(self.run_on({"prints": "end(0, UNDER == 'async')"}).returncode, 0)
        done = self.run_on({"prints": "end(0, 'WEIR_FAKE' in os.environ and UNDER == 'async')"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("| works | works | - | other output (1) |", done.stdout)

    def test_output_that_differs_below_a_framework_is_an_error(self):
        done = self.run_on({"prints": "end(0, UNDER)"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("| works | other output (1) | - | works |", self.page.read_text())
        self.assertIn("1. `printed 'below', and 'alone' without Weir`", self.page.read_text())

    def test_a_plug_may_differ_in_the_cache_s_own_figures_and_in_nothing_else(self):
        figures = {"figures": "end(0, 'cache: ' + UNDER)"}
        done = self.run_on(figures, "--ways", "alone,plug", name="pytorch")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| PyTorch | figures | works | - | works | - |", done.stdout)
        self.assertEqual(self.run_on(figures, "--ways", "alone,below", name="pytorch").returncode, 1)
        done = self.run_on({"prints": "end(0, 'same\\n' + UNDER)"}, "--ways", "alone,plug", name="pytorch")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1. `printed 'plug', and 'alone' without Weir`", done.stdout)

    def test_a_feature_that_fails_alone_is_an_error(self):
        self.assertEqual(self.run_on({"broken": "end(1, 'always')"}).returncode, 1)

    def test_what_the_stand_in_cannot_show_is_no_error(self):
        done = self.run_on({"kernels": "end(77, 'needs a GPU')"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| untried (1) | untried (1) | - | untried (1) |\n\n1. `needs a GPU`", self.page.read_text())

    def test_a_feature_that_hangs_is_ended_with_all_that_it_started(self):
        name = self.folder / "child"
        done = self.run_on({"hangs": f"os.system('sleep 1000 & echo $! >{name}') or time.sleep(1000)"},
                           "--timeout", "15", "--ways", "alone")
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not end within 15 s", done.stdout)
        self.assertTrue(ends(name.read_text().strip()))

    def test_a_program_that_a_signal_ends_is_said_with_its_last_words(self):
        body = "print('  what():  the end', file=sys.stderr, flush=True) or os.kill(os.getpid(), 6)"
        done = self.run_on({"dies": body})
        self.assertIn("1. `ended by signal 6: the end`", done.stdout)

    def test_a_part_of_the_table_leaves_the_page_as_it_is(self):
        before = self.page.read_text()
        for words in (["thing"], ["--feature", "one"], ["--ways", "alone,async"]):
            done = self.run_on({"one": "end(0)", "two": "end(0)"}, *words)
            self.assertEqual((done.returncode, self.page.read_text()), (0, before), done.stderr)
            self.assertRegex(done.stdout, r"\| thing \| one(, two)? \| works \|")

    def test_a_name_means_all_of_its_programs(self):
        (self.folder / "with_thing_more.py").write_text(PROGRAM_HEAD + "main({'other': lambda: end(0)})\n")
        done = self.run_on({"one": "end(0)"}, "thing")
        self.assertIn("| thing_more | other | works | works | - | works |", done.stdout)
        self.assertNotIn("other", self.run_on({"one": "end(0)"}, "thing", "--feature", "one").stdout)

    def test_check_writes_nothing_and_compares(self):
        before = self.page.read_text()
        self.assertEqual(self.run_on({"one": "end(0)"}, "--check").returncode, 1)
        self.assertEqual(self.page.read_text(), before)
        self.run_on({"one": "end(0)"})
        self.assertEqual(self.run_on({"one": "end(0)"}, "--check").returncode, 0)

    def test_bad_input_is_one_line_and_exit_code_2(self):
        for words, said in ((["nothing"], "nothing is no framework: thing"), (["--feature", "x"], "has the feature x"),
                            (["--ways", "other"], "--ways has 'other': allowed are alone, below, plug, async"),
                            (["--timeout", "0"], "1 or more")):
            done = self.run_on({"one": "end(0)"}, *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)
        self.page.write_text("no marks")
        done = self.run_on({"one": "end(0)"})
        self.assertEqual((done.returncode, self.page.read_text()), (2, "no marks"))


class Pure(unittest.TestCase):
    def test_a_reason_stands_once_in_a_cell_of_the_table(self):
        text = matrix.shortened("at 0x7f0012345678 | `x`\n" + "long " * 100)
        self.assertTrue(text.startswith("at 0x… / 'x' long") and len(text) == matrix.LONGEST_REASON, text)

    def test_a_reason_is_its_first_sentence_and_keeps_the_dots_of_numbers_and_names(self):
        self.assertEqual(matrix.shortened("a.b() failed. If you need it, ask."), "a.b() failed.")
        self.assertEqual(matrix.shortened("not meaningful. (For others it is)"), "not meaningful.")
        self.assertEqual(matrix.shortened("limit 2. A 972.80 MiB"), "limit 2. A 972.80 MiB")

    def test_features_with_the_same_outcomes_share_a_row_and_older_versions_have_what_differs(self):
        works, fails = matrix.Outcome(matrix.WORKS), matrix.Outcome(matrix.FAILS, "why")
        rows = [("Thing", "one_a", {"alone": works, "plug": works}), ("Thing", "two", {"alone": works, "plug": works}),
                ("Thing", "three", {"alone": works, "plug": fails})]
        rows += [(f"Thing {version}", name, {"alone": outcome}) for version in ("2.9", "2.5")
                 for name, outcome in (("one_a", works), ("two", fails), ("three", works))]
        rows += [("Thing 2.5", "four", {"alone": fails})]
        self.assertEqual(matrix.table(rows).splitlines()[2:], [
            "| Thing | one a, two | works | - | works | - |", "| Thing | three | works | - | fails (1) | - |",
            "| Thing 2.9, Thing 2.5 | two | fails (1) | - | - | - |", "| Thing 2.5 | four | fails (1) | - | - | - |",
            "", "1. `why`"])

    def test_each_versions_file_says_what_is_downloaded_and_pins_every_package(self):
        for pins in (environment.VERSIONS, *environment.OLDER.values()):
            text = pins.read_text()
            self.assertEqual(len(environment.announced(text)), 2)
            lines = [line for line in text.splitlines() if line and not line.startswith("#")]
            self.assertEqual(len(environment.pinned(text)), len(lines))

    def test_a_runtime_exports_also_the_names_that_macros_make(self):
        header = """#define cudaGetThings cudaGetThings_v2
        #define cudaMove __CUDART_API_PTDS(cudaMove)
        #define cudaWait __CUDART_API_PTSZ(cudaWait)
        extern __host__ cudaError_t CUDARTAPI cudaGetThings(int);"""
        self.assertEqual(set(runtime.cuda_headers.functions(header, "CUDARTAPI")),
                         {"cudaGetThings", "cudaGetThings_v2", "cudaMove", "cudaMove_ptds", "cudaWait", "cudaWait_ptsz"})

    def test_a_program_gets_nothing_that_was_set_for_frameworks_or_weir(self):
        os.environ["WEIR_BUDGET"] = os.environ["PYTORCH_ALLOC_CONF"] = "x"
        made = environment.Environment("there", "build").variables()
        self.assertNotIn("WEIR_BUDGET", made)
        self.assertNotIn("PYTORCH_ALLOC_CONF", made)
        self.assertTrue(made["LD_LIBRARY_PATH"].endswith("build/tests/standin"))


if __name__ == "__main__":
    unittest.main()
