#!/usr/bin/env python3
"""Replays the traces of this folder and of small/, and the large ones with all sizes divided, against `paged`.

Prints how many pages each of them reserves above 1.03 times its peak and two pages, where the device is 0, 50 and 200
operations behind, and how many do (docs/fragmentation.md).
"""

import argparse
import csv
import gzip
import json
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PAGE = 2 << 20
DIVISORS = (16, 28, 48)
LAGS = (0, 50, 200)


def divided(path, divisor, folder):
    """Writes a copy of a trace, with its sizes divided, to `folder`."""
    to = folder / f"{path.name.partition('.')[0]}_{divisor}.csv"
    with gzip.open(path, "rt", newline="") as source, to.open("w", newline="") as target:
        rows, out = csv.reader(source), csv.writer(target)
        out.writerow(next(rows))
        out.writerows((*row[:3], max(1, -(-int(row[3]) // divisor))) for row in rows)
    return to


def pages_above(weir, paths, lag):
    """Returns for each trace the number of pages that `paged` reserves above the mark; negative if below."""
    command = [weir, "replay", *paths, "--pool", "paged", "--no-search", "--lag", str(lag), "--json", "-"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    above = {}
    for trace in json.loads(done.stdout)["traces"]:
        mark = 1.03 * trace["peak_requested_bytes"] + 2 * PAGE
        name = pathlib.Path(trace["trace"]).name.partition(".")[0]
        above[name] = (trace["pools"][0]["peak_reserved_bytes"] - mark) / PAGE
    return above


def print_set(name, weir, paths):
    if not paths:
        return
    above = [pages_above(weir, paths, lag) for lag in LAGS]
    for trace in above[0]:
        row = [each[trace] for each in above]
        if max(row) > 0:
            print(f"  {trace:24}" + "".join(f"{pages:+8.1f}" for pages in row))
    over = sum(pages > 0 for each in above for pages in each.values())
    print(f"{name}: {over} of {len(LAGS) * len(paths)} above\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir", help="the program, as build/dev/tools/weir/weir")
    parser.add_argument("traces", nargs="*", help="their names (default: all)")
    arguments = parser.parse_args()
    weir = arguments.weir
    large, small = ([path for path in sorted(HERE.glob(each))
                     if not arguments.traces or path.name.partition(".")[0] in arguments.traces]
                    for each in ("*.csv.gz", "small/*.csv.gz"))
    print("pages above 1.03 times the peak and two, " + ", ".join(f"{lag} behind" for lag in LAGS) + "\n")
    print_set("large", weir, large)
    print_set("small", weir, small)
    with tempfile.TemporaryDirectory() as folder:
        print_set("large, divided by " + ", ".join(map(str, DIVISORS)), weir,
                  [divided(path, by, pathlib.Path(folder)) for path in large for by in DIVISORS])


if __name__ == "__main__":
    main()
