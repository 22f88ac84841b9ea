#!/usr/bin/env python3
"""Measures what readers cost weir-train's wide network that are half as fast as the device, as fast,
and twice as fast. bench/run feeding builds what it needs and runs it.

  feeding.py BUILD [--quick]     BUILD is a build folder with weir-train

A step should take the time of the slower of both: the readers' time for a batch, or the device's.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

READERS = 2
MOST_RATIO = 1.1
SPEEDS = {"half as fast": 2.0, "as fast": 1.0, "twice as fast": 0.5}  # and their time over the device's
COLUMNS = "readers|ratio|most||step ms|readers ms|device ms|staging MiB|end MiB|peak MiB"
LEGEND = """\
  readers: their speed, compared with the device's; ratio: step ms over the slower of readers ms and
  device ms; most: the target; step ms: time of a batch; readers ms: time that the readers need for
  it; device ms: time that the device needs for it; staging MiB: host memory for copies after a
  quarter of the run; end MiB: the same at the end; peak MiB: most memory taken from the device, of
  {budget} MiB."""


class Run:
    """One training. Times are seconds for a batch."""

    def __init__(self, figures, read_time):
        result = figures["result"]
        batches = result["batches"]
        self.step = result["seconds"] / batches
        self.device = self.step * (1 - result["idle_share"])
        self.readers = read_time / READERS
        self.ratio = self.step / max(self.device, self.readers)
        # The buffers fill while the first batches run.
        staging = result["staging_bytes_per_batch"]
        self.staging = staging[len(staging) // 4], staging[-1]
        self.peak = result["peak_reserved_bytes"]
        self.budget = result["memory"]["budget_bytes"]


def train(program, scratch, quick, read_time):
    """Runs a training whose readers take `read_time` seconds for a batch, or as long as they need."""
    figures = scratch / "figures.json"
    words = [str(program), "wide", "--device", "cpu", "--budget", "64MiB", "--scale", "0.02",
             "--readers", str(READERS), "--test-batches", "1", "--json", str(figures),
             "--batches", "4" if quick else "300"]  # fmt: skip
    if read_time:
        words += ["--read-time", f"{max(1, round(1e6 * read_time))}us"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"feeding.py: {' '.join(words)} failed: {done.stderr}")
    return Run(json.loads(figures.read_text()), read_time)


def milliseconds(seconds):
    return f"{1000 * seconds:.2f}"


def mebibytes(count):
    return f"{count / (1 << 20):.2f}"


def row(name, runs):
    """One row: medians, but the most memory of all runs."""

    def middle(key):
        return statistics.median(getattr(run, key) for run in runs)

    ratio = middle("ratio")
    first, last = (max(run.staging[i] for run in runs) for i in (0, 1))
    peak = max(runs, key=lambda run: run.peak)
    return [
        name, f"{ratio:.2f}x", f"{MOST_RATIO:.2f}x", "met" if ratio <= MOST_RATIO else "MISSED",
        milliseconds(middle("step")), milliseconds(middle("readers")), milliseconds(middle("device")),
        mebibytes(first), mebibytes(last), mebibytes(peak.peak),
    ]  # fmt: skip


def main(build, quick):
    program = pathlib.Path(build).resolve() / "trainer" / "weir-train"
    rounds = 1 if quick else 5
    runs = {name: [] for name in SPEEDS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            # In each round anew, since other load on the machine changes the device's speed.
            device = train(program, pathlib.Path(folder), quick, 0).device
            for name, times in SPEEDS.items():
                read_time = READERS * times * device
                runs[name].append(train(program, pathlib.Path(folder), quick, read_time))
    table = [COLUMNS.split("|")] + [row(name, found) for name, found in runs.items()]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    for line in table:
        cells = (text.ljust(width) if i < 4 else text.rjust(width)
                 for i, (text, width) in enumerate(zip(line, widths)))  # fmt: skip
        print("  ".join(cells).rstrip())
    budget = next(iter(runs.values()))[0].budget
    print(LEGEND.format(budget=mebibytes(budget)))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--quick"]):
        sys.exit(__doc__)
    main(sys.argv[1], len(sys.argv) == 3)
