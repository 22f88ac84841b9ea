#!/usr/bin/env python3
"""The check of pages finds what it is for."""

import subprocess
import unittest

import blocks
import sources


def one(info, text="weir info"):
    return blocks.blocks_of("page.md", f"Words.\n```{info}\n{text}\n```\n")[0]


def run(text):
    return subprocess.run(["bash", "-c", blocks.script_of(one("sh", text))], capture_output=True, text=True)


class Suite:
    """A suite with the one test A.B, which runs `weir info` and is given the page read.md."""

    def __contains__(self, name):
        return name == "A.B"

    def text_of(self, name):
        return "run({weir, 'info', 'weir-train', '--budget'})"

    def reads(self, name, page):
        return page == "read.md"


class Marks(unittest.TestCase):
    def test_each_mark_says_who_runs_it(self):
        for info, runner in (("sh", "run"), ("sh gpu", "gpu"), ("sh manual", "manual"), ("sh test=A.B", "test=A.B")):
            self.assertEqual(one(info).runner, runner)
            self.assertEqual(blocks.faults_of(one(info), Suite()), [])

    def test_what_is_wrong_is_named_with_its_place(self):
        for info, said in (("sh test=A.C", "no test A.C"), ("sh gpus", "'sh gpus' is not one of"),
                           ("", "looks like a command"), ("text", "looks like a command"),
                           ("sh test=A.B gpu", "is not one of")):
            faults = blocks.faults_of(one(info), Suite())
            self.assertEqual(len(faults), 1, info)
            self.assertIn("page.md:2", faults[0])
            self.assertIn(said, faults[0])

    def test_output_and_programs_need_no_mark(self):
        for info, text in (("text", "policy  batches/s"), ("", "weirs are dams"), ("", "weir 0.1.0: 16 batches"), ("", "weir-train: no"), ("cpp", "weir::Pool pool;")):
            self.assertEqual(blocks.faults_of(one(info, text), Suite()), [])

    def test_a_block_without_an_end_is_refused(self):
        with self.assertRaisesRegex(ValueError, "page.md:1: this block has no end"):
            blocks.blocks_of("page.md", "```sh\nweir info\n")


    def test_a_test_that_runs_something_else_is_found(self):
        for text, missing in (("weir info --hooks", "--hooks"), ("weir ps", "ps"), ("tools/lint", "lint"),
                              ("weir info\nWEIR_LOG=off weir info", "WEIR_LOG"), ("weir info && weir \\\n set 3", "set")):
            faults = blocks.faults_of(one("sh test=A.B", text), Suite())
            self.assertEqual(len(faults), 1, text)
            self.assertTrue(faults[0].endswith(f"its source has no {missing}"), faults[0])
        self.assertEqual(blocks.faults_of(one("sh test=A.B", "build/weir-train --budget=3 x  # prints: it's fine"), Suite()), [])

    def test_a_test_that_reads_the_page_runs_what_stands_there(self):
        block = blocks.blocks_of("read.md", "```sh test=A.B\ntools/lint\n```\n")[0]
        self.assertEqual(blocks.faults_of(block, Suite()), [])


class Words(unittest.TestCase):
    def test_programs_subcommands_flags_and_variables_count(self):
        for command, words in (
                ("bench/run oom --quick  # two minutes", ["run", "oom", "--quick"]),
                ("WEIR_X=1 LD_PRELOAD=$(weir info) python a.py", ["WEIR_X", "LD_PRELOAD", "weir", "info", "python"]),
                ("g++ -std=c++20 main.cpp $(pkg-config --libs weir) -o program", ["g++", "-std", "pkg-config", "--libs", "-o"]),
                ("cmake --build build && build/consumer", ["cmake", "--build", "consumer"]),
                ("weir set 4711 --budget 6GiB", ["weir", "set", "--budget"])):
            self.assertEqual(sources.words_of(command), words, command)

    def test_a_word_is_a_whole_one_and_some_programs_are_variables(self):
        self.assertEqual(sources.missing_in("weir-train run --budgets", "weir run --budget"), ["weir", "--budget"])
        self.assertEqual(sources.missing_in('"$CXX" -o a', "g++ -o b"), [])


class Scripts(unittest.TestCase):
    def test_every_command_has_to_succeed(self):
        self.assertEqual(run("true\ntrue").returncode, 0)
        failed = run("false\ntrue")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("exit code 1, not 0: false", failed.stderr)

    def test_a_command_may_have_to_fail(self):
        self.assertEqual(run("(exit 3)  # runs out of memory: exits with 3").returncode, 0)
        self.assertEqual(run("true  # exits with 3").returncode, 1)

    def test_a_command_may_be_continued_and_comments_stand_alone(self):
        self.assertEqual(run("# first\necho a \\\n  b").stdout, "a b\n")

    def test_a_failure_within_a_pipe_is_one(self):
        self.assertEqual(run("false | cat").returncode, 1)


if __name__ == "__main__":
    unittest.main()
