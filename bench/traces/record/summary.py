#!/usr/bin/env python3
"""Prints what is in the traces of a folder, as the table of README.md. Needs nothing but Python.

Reads the CSVs and refuses those without lifetimes. The steps come from the JSON next to each CSV.
"""

import argparse
import csv
import gzip
import json
import pathlib
import sys

GIB, MIB = 2**30, 2**20
COLUMNS = ("trace", "PyTorch", "steps", "buffers", "of 1 MiB or more", "alive at the end", "peak of requested bytes",
           "requested in all")


def lifetimes(path):
    """Returns the rows of a trace as (start, end, size)."""
    with gzip.open(path, "rt", encoding="ascii", newline="") as file:
        lines = csv.reader(file)
        if next(lines, None) != ["buffer", "start", "end", "size"]:
            raise ValueError("line 1: no header buffer,start,end,size")
        rows = []
        for number, line in enumerate(lines):
            buffer, start, end, size = map(int, line)
            if buffer != number or not 0 <= start < end or size <= 0:
                raise ValueError(f"line {number + 2}: no buffer {number} that lives and has a size: {line}")
            rows.append((start, end, size))
    return rows


def events(rows, count):
    """Returns the change of each of the `count` events in bytes. What is live after the last event ends at
    `count`."""
    changes = [0] * count
    for start, end, size in rows:
        for event, change in ((start, size), (end, -size)):
            if event > count:
                raise ValueError(f"event {event} is none of {count}")
            if event == count:
                continue
            if changes[event] != 0:
                raise ValueError(f"event {event} is of two buffers")
            changes[event] = change
    if 0 in changes:
        raise ValueError(f"event {changes.index(0)} is of no buffer")
    return changes


def peak(changes):
    total = most = 0
    for change in changes:
        total += change
        most = max(most, total)
    return most


def row(path):
    rows = lifetimes(path)
    about = json.loads(path.with_name(path.name.removesuffix(".csv.gz") + ".json").read_text())
    last = about["events"]
    most = peak(events(rows, last))
    return (f"`{about['workload']}`", about["torch"], len(about["steps"]), len(rows),
            sum(size >= MIB for _, _, size in rows), sum(end == last for _, end, _ in rows),
            f"{most} ({most / GIB:.2f} GiB)", f"{sum(size for _, _, size in rows) / GIB:.0f} GiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=here)
    folder = parser.parse_args().folder
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for path in sorted(folder.glob("*.csv.gz")):
        try:
            print(f"| {' | '.join(map(str, row(path)))} |")
        except (OSError, EOFError, ValueError, KeyError) as error:
            print(f"summary: {path}: {error}", file=sys.stderr)
            sys.exit(2)


if __name__ == "__main__":
    main()
