"""Checks bench/traces under the named root: each trace has valid lifetimes and a row on the page with its figures."""

import csv
import gzip
import json
import pathlib
import sys
import unittest

TRACES = pathlib.Path(sys.argv.pop(1)) / "bench" / "traces"


def lifetimes(path):
    """Returns the rows of a trace as (start, end, size)."""
    with gzip.open(path, "rt", encoding="ascii", newline="") as file:
        lines = csv.reader(file)
        assert next(lines) == ["buffer", "start", "end", "size"]
        rows = [tuple(map(int, line)) for line in lines]
    for number, (buffer, start, end, size) in enumerate(rows):
        assert buffer == number and 0 <= start < end and size > 0, (path, number)
    return [row[1:] for row in rows]


def peak(rows, count):
    """Returns the most bytes live at once. Each of the `count` events is of one buffer; what is live after the last
    ends at `count`."""
    changes = [0] * (count + 1)
    for start, end, size in rows:
        for event, change in ((start, size), (end, -size)):
            assert event == count or changes[event] == 0, f"event {event} is of two buffers"
            changes[event] += change
    assert 0 not in changes[:-1], "an event is of no buffer"
    total = most = 0
    for change in changes[:-1]:
        total += change
        most = max(most, total)
    return most


class Traces(unittest.TestCase):
    def test_are_what_their_page_says(self):
        shown = [line for line in (TRACES / "README.md").read_text().splitlines() if line.startswith("| `")]
        paths = sorted(TRACES.rglob("*.csv.gz"))
        self.assertEqual(len(shown), len(paths))
        for path in paths:
            rows, about = lifetimes(path), json.loads(path.with_name(path.name.replace("csv.gz", "json")).read_text())
            of_it = [row for row in shown if row.startswith(f"| `{about['workload']}` |")]
            self.assertEqual(len(of_it), 1, path)
            figures = f" | {len(about['steps'])} | {len(rows)} | {peak(rows, about['events']) / 2**30:.2f} |"
            self.assertTrue(of_it[0].endswith(figures), (of_it, figures))
            self.assertEqual(path.name, f"{about['workload']}.csv.gz")


if __name__ == "__main__":
    unittest.main()
