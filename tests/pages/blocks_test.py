#!/usr/bin/env python3
"""The check of pages finds what it is for."""

import subprocess
import unittest

import blocks


def one(info, text="weir info"):
    return blocks.blocks_of("page.md", f"Words.\n```{info}\n{text}\n```\n")[0]


def run(text):
    return subprocess.run(["bash", "-c", blocks.script_of(one("sh", text))], capture_output=True, text=True)


class Marks(unittest.TestCase):
    def test_each_mark_says_who_runs_it(self):
        for info, runner in (("sh", "run"), ("sh gpu", "gpu"), ("sh manual", "manual"), ("sh test=A.B", "test=A.B")):
            self.assertEqual(one(info).runner, runner)
            self.assertEqual(blocks.faults_of(one(info), {"A.B"}), [])

    def test_what_is_wrong_is_named_with_its_place(self):
        for info, said in (("sh test=A.C", "no test A.C"), ("sh gpus", "'sh gpus' is not one of"),
                           ("", "looks like a command"), ("text", "looks like a command"),
                           ("sh test=A.B gpu", "is not one of")):
            faults = blocks.faults_of(one(info), {"A.B"})
            self.assertEqual(len(faults), 1, info)
            self.assertIn("page.md:2", faults[0])
            self.assertIn(said, faults[0])

    def test_output_and_programs_need_no_mark(self):
        for info, text in (("text", "policy  batches/s"), ("", "weirs are dams"), ("", "weir 0.1.0: 16 batches"), ("", "weir-train: no"), ("cpp", "weir::Pool pool;")):
            self.assertEqual(blocks.faults_of(one(info, text), set()), [])

    def test_a_block_without_an_end_is_refused(self):
        with self.assertRaisesRegex(ValueError, "page.md:1: this block has no end"):
            blocks.blocks_of("page.md", "```sh\nweir info\n")


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
