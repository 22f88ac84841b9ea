#!/usr/bin/env python3
"""Measures what timelines cost: a recorded run of weir-train against one without recording, and the
report of a long recording. bench/run timelines builds what it needs and runs it.

  timelines.py BUILD [--quick]     BUILD is a build folder with weir-train, weir, weir-made-timeline
"""

import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

MIB = 1 << 20


def run(words):
    """Runs a program without output. Returns its wall time in seconds and its peak memory in bytes."""
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.execv(words[0], words)
    _, status, used = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"timelines.py: {' '.join(words)} failed: {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - start, used.ru_maxrss << 10


def verdict(met):
    return "met" if met else "MISSED"


def row(figure, value, target, met):
    said = met if isinstance(met, str) else verdict(met)
    print(f"{figure:<46} {value:>12}  {target:>10}  {said if target else ''}".rstrip())


def median_between(values):
    """Returns a 95% confidence interval of the median as two of the values: by order statistics, like
    a sign test."""
    values = sorted(values)
    tail, below = 0.0, 0
    while below < len(values) // 2:
        tail += math.comb(len(values), below) / 2 ** len(values)
        if tail > 0.025:
            break
        below += 1
    outside = max(below - 1, 0)
    return values[outside], values[-1 - outside]


class Training:
    """Runs pairs one after another, the recorded run first in every second pair."""

    def __init__(self, train, scratch, quick):
        self.train = str(train)
        self.scratch = scratch
        self.pairs = 1 if quick else 15
        self.quick = quick

    def rate(self, flags):
        """Returns the batches per second of one run."""
        figures = self.scratch / "figures.json"
        run([self.train, "run", "--json", str(figures)] + flags)
        return json.loads(figures.read_text())["result"]["batches_per_second"]

    def ratios(self, name, flags):
        """Returns the ratio recorded / not recorded of each pair."""
        recorded = flags + ["--timeline", str(self.scratch / name)]
        ratios = []
        for pair in range(self.pairs):
            first, second = (recorded, flags) if pair % 2 else (flags, recorded)
            rates = {id(each): self.rate(each) for each in (first, second)}
            ratios.append(rates[id(recorded)] / rates[id(flags)])
        return ratios

    def print(self):
        for size, batches in ((64, 100), (8, 300)):
            flags = ["--batch-size", str(size), "--batches", "4" if self.quick else str(batches)]
            for name in ("run.json", "run.pftrace"):
                ratios = self.ratios(name, flags)
                median, (least, most) = statistics.median(ratios), median_between(ratios)
                figure = f"weir-train, batches of {size}, {pathlib.Path(name).suffix}"
                met = median >= 0.98 if least >= 0.98 or most < 0.98 else "cannot tell: too noisy"
                row(figure, f"{median:.4f}x", ">= 0.98", met)
                print(f"    {self.pairs} pairs, the median between {least:.4f} and {most:.4f}")


def print_reports(build, scratch, quick):
    page = scratch / "page.html"
    for events in (10**4, 10**5) if quick else (10**6, 10**7):
        for suffix in (".json", ".pftrace"):
            file = scratch / f"made{suffix}"
            run([str(build / "bench/timeline/weir-made-timeline"), str(events), str(file)])
            words = [str(build / "tools/weir/weir"), "timeline", "report", str(file), "-o", str(page)]
            seconds, memory = run(words)
            name = f"{events:.0e} events, {suffix}".replace("e+0", "e")
            each = file.stat().st_size / events
            row(f"{name}: bytes an event", f"{each:.1f}", "<= 30" if suffix == ".pftrace" else "", each <= 30)
            row(f"{name}: report, wall time", f"{seconds:.1f} s", "< 60 s", seconds < 60)
            row(f"{name}: report, most memory", f"{memory / MIB:.0f} MiB", "< 2048 MiB", memory < 2048 * MIB)
            size = page.stat().st_size / MIB
            row(f"{name}: page", f"{size:.2f} MiB", "<= 3 MiB", size <= 3)
            file.unlink()


def main(words):
    if not words or words[0].startswith("-") or words[1:] not in ([], ["--quick"]):
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(words[0]).resolve()
    quick = len(words) > 1
    with tempfile.TemporaryDirectory(prefix="weir-timelines.") as folder:
        scratch = pathlib.Path(folder)
        print(f"{'figure':<46} {'value':>12}  {'target':>10}")
        print_reports(build, scratch, quick)
        Training(build / "trainer/weir-train", scratch, quick).print()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
