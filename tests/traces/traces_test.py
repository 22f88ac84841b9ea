"""Checks bench/traces under the named root: its page has the figures that the traces give, and the program
that counts them refuses invalid traces."""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TRACES = pathlib.Path(sys.argv.pop(1)) / "bench" / "traces"
HEADER = "buffer,start,end,size\n"


def summary(*words):
    command = [sys.executable, "-B", TRACES / "record" / "summary.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


class Traces(unittest.TestCase):
    def test_are_what_their_page_says(self):
        shown = [line for line in (TRACES / "README.md").read_text().splitlines() if line.startswith("| `")]
        for folder in (TRACES, TRACES / "small"):
            done = summary(folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            for line in done.stdout.splitlines()[2:]:
                name, _, steps, buffers, _, _, peak, _ = line.strip("| ").split(" | ")
                gib = peak.partition("(")[2].removesuffix(" GiB)")
                of_it = [row for row in shown if row.startswith(f"| {name} |")]
                self.assertEqual(len(of_it), 1, name)
                self.assertTrue(of_it[0].endswith(f" | {steps} | {buffers} | {gib} |"), (line, of_it))

    def test_are_each_on_their_page_and_of_a_workload(self):
        names = {path.name.removesuffix(".csv.gz") for path in TRACES.rglob("*.csv.gz")}
        sys.path.insert(0, str(TRACES / "record"))
        import record
        self.assertEqual(names, set(record.WORKLOADS))
        for name in names:
            module, function, _ = record.WORKLOADS[name]
            self.assertIn(f"\ndef {function}(device, steps, step", (TRACES / "record" / f"{module}.py").read_text())
            self.assertEqual((TRACES / "README.md").read_text().count(f"| `{name}` |"), 1, name)


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)

    def of(self, text, events):
        (self.at / "made_up.csv.gz").write_bytes(gzip.compress(text.encode()))
        about = {"workload": "made_up", "torch": "9", "events": events, "steps": [{}, {}]}
        (self.at / "made_up.json").write_text(json.dumps(about))
        return summary(self.at)

    def test_counts_and_finds_the_peak(self):
        done = self.of(HEADER + f"0,0,4,{1 << 30}\n1,1,2,7\n2,3,4,5\n", 4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"| `made_up` | 9 | 2 | 3 | 1 | 2 | {(1 << 30) + 7} (1.00 GiB) | 1 GiB |", done.stdout)

    def test_refuses_what_is_no_trace(self):
        for text, events, said in (
            ("", 1, "no header"),
            (HEADER + "0,0,0,4\n", 1, "line 2"),
            (HEADER + "1,0,1,4\n", 1, "line 2"),
            (HEADER + "0,0,1,0\n", 1, "line 2"),
            (HEADER + "0,0,1,x\n", 1, "made_up"),
            (HEADER + "0,0,2,4\n1,0,2,4\n", 2, "event 0 is of two"),
            (HEADER + "0,0,2,4\n", 2, "event 1 is of no buffer"),
            (HEADER + "0,0,3,4\n", 1, "event 3 is none of 1"),
        ):
            done = self.of(text, events)
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
