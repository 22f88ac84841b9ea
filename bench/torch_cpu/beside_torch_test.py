#!/usr/bin/env python3
"""Tests of beside_torch.py and libsvm.py that need no PyTorch."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import beside_torch
from libsvm import read_libsvm

HERE = pathlib.Path(__file__).resolve().parent


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class Files(Folder):
    def read(self, text):
        path = self.folder / "train.libsvm"
        path.write_text(text)
        return read_libsvm(path)

    def test_rows_are_cut_into_whole_batches_whose_starts_begin_at_zero(self):
        rows = self.read("5 9 7\n1 0:0.5 3:1\n2,6 8:0.25\n0 1:1\n3 2:0.125 4:2\n5 7:1\n")
        first, second = rows.batches(2)
        self.assertEqual((first.starts, first.indices, first.values), ([0, 2, 3], [0, 3, 8], [0.5, 1, 0.25]))
        self.assertEqual((first.label_starts, first.labels), ([0, 1, 3], [1, 2, 6]))
        self.assertEqual((second.starts, second.indices), ([0, 1, 3], [1, 2, 4]))
        self.assertEqual((second.label_starts, second.labels), ([0, 1, 2], [0, 3]))

    def test_a_cut_file_is_refused(self):
        with self.assertRaisesRegex(ValueError, "3 rows announced, 1 found"):
            self.read("3 9 7\n1 0:0.5\n")


class Figures(unittest.TestCase):
    def row(self, ours, theirs, job="wide"):
        runs = {"weir": [(time, 9.5) for time in ours], "torch": [(time, 9.25) for time in theirs]}
        return beside_torch.figures(job, runs)

    def test_the_ratio_is_the_median_of_the_rounds_and_not_of_the_medians(self):
        row = self.row([0.010, 0.030, 0.020], [0.020, 0.100, 0.010])
        self.assertAlmostEqual(row["ratio"], 0.5)
        self.assertAlmostEqual(row["least_ratio"], 0.3)
        self.assertAlmostEqual(row["most_ratio"], 2)
        self.assertTrue(row["met"])

    def test_the_table_says_what_is_met_and_what_has_no_target(self):
        lines = beside_torch.table([self.row([0.03], [0.02]), self.row([0.03], [0.02], "d2l")])
        self.assertRegex(lines[1], r"^wide +30 ms +20 ms +1\.50 +1\.50 - 1\.50 +<= 0\.8 +MISSED +9\.5000 +9\.2500$")
        self.assertRegex(lines[2], r"^d2l +30 ms +20 ms +1\.50 +1\.50 - 1\.50 +9\.5000 +9\.2500$")

    def test_both_sides_take_turns_and_each_is_first_in_half_of_the_rounds(self):
        calls = []

        def side(name):
            return lambda job, steps: (calls.append((name, job, steps)), 1.0)[1:] * 2

        runs = beside_torch.measure(side("weir"), side("torch"), {"wide": 4, "small": 9}, 2)
        self.assertEqual([name for name, _, _ in calls], ["weir", "torch"] * 2 + ["torch", "weir"] * 2)
        self.assertEqual({(job, steps) for _, job, steps in calls}, {("wide", 4), ("small", 9)})
        self.assertEqual(len(runs["small"]["torch"]), 2)

    def test_of_a_comparison_the_default_policy_counts(self):
        policies = [
            {"policy": name, "batches_per_second": rate, "last_run": {"mean_loss": rate / 8}}
            for name, rate in (("barrier", 2), ("throttled", 4))
        ]
        self.assertEqual(beside_torch.of_comparison({"policies": policies}), (0.25, 0.5))


class Refusals(Folder):
    def run_without_packages(self, *words):
        command = [sys.executable, "-S", "-B", str(HERE / "beside_torch.py"), *words]
        return subprocess.run(command, capture_output=True, text=True)

    def program(self, text):
        path = self.folder / "trainer/weir-train"
        path.parent.mkdir()
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def test_without_pytorch_one_line_says_so(self):
        self.program("exit 0")
        done = self.run_without_packages(str(self.folder))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Abeside_torch\.py: \S+ has no PyTorch: .*\n\Z")

    def test_without_the_program_one_line_says_so(self):
        done = self.run_without_packages(str(self.folder))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Abeside_torch\.py: \S+/trainer/weir-train: not there: .*\n\Z")

    def test_a_program_that_fails_is_named_with_its_last_line(self):
        self.program("echo first >&2; echo last >&2; exit 3")
        weir = beside_torch.Weir(str(self.folder / "trainer/weir-train"), self.folder)
        with self.assertRaisesRegex(beside_torch.Refused, "weir-train wide: exit code 3: last$"):
            weir.make_data()

    def test_no_rounds_are_refused(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as ended:
            beside_torch.parse(["build", "--rounds", "0"])
        self.assertEqual(ended.exception.code, 2)
        self.assertIn("expected at least 1, found 0", said.getvalue())


if __name__ == "__main__":
    unittest.main()
