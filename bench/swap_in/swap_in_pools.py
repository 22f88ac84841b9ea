"""Measures what pools cost for the driver requests of frameworks: docs/swap-in.md, two pools.

usage: python3 bench/swap_in/swap_in_pools.py FOLDER [--quick]

FOLDER has the built tools/weir/weir. The tensors are those of bench/traces. The requests of a
framework's cache to the driver are computed here from the cache's documentation; no framework runs.
Each stream is replayed on a device with 1.5 times the peak of requested bytes.
"""

import bisect
import csv
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile

MIB = 1 << 20
POOLS = ["naive", "round", "best_fit", "paged"]
TRACES = pathlib.Path(__file__).parent.parent / "traces"


class Cache:
    """Cuts pieces from regions of the driver by best fit, and joins free neighbours."""

    def __init__(self, rounding, region, split):
        self.rounding, self.region, self.split = rounding, region, split
        self.regions = []  # (time, bytes), each kept to the end
        self.free = []  # sorted (bytes, region, offset)
        self.pieces = {}  # region -> sorted [offset, bytes, is free]
        self.held = {}

    def _take(self, piece, size):
        bytes_, region, offset = piece
        pieces = self.pieces[region]
        at = bisect.bisect_left(pieces, [offset])
        pieces[at] = [offset, bytes_, False]
        if self.split(size, bytes_ - size):
            pieces[at][1] = size
            pieces.insert(at + 1, [offset + size, bytes_ - size, True])
            bisect.insort(self.free, (bytes_ - size, region, offset + size))
        return region, offset

    def allocate(self, time, buffer, size):
        size = -(-size // self.rounding) * self.rounding
        at = bisect.bisect_left(self.free, (size, -1, -1))
        if at < len(self.free):
            piece = self.free.pop(at)
        else:
            piece = (self.region(size), len(self.regions), 0)
            self.regions.append((time, piece[0]))
            self.pieces[piece[1]] = [[0, piece[0], True]]
        self.held[buffer] = self._take(piece, size)

    def deallocate(self, buffer):
        region, offset = self.held.pop(buffer)
        pieces = self.pieces[region]
        at = bisect.bisect_left(pieces, [offset])
        for other in (at + 1, at - 1):
            if 0 <= other < len(pieces) and pieces[other][2]:
                low, high = sorted((at, other))
                self.free.remove((pieces[other][1], region, pieces[other][0]))
                pieces[low : high + 1] = [[pieces[low][0], pieces[low][1] + pieces[high][1], True]]
                at = low
        pieces[at][2] = True
        bisect.insort(self.free, (pieces[at][1], region, pieces[at][0]))


class Torch:
    """PyTorch's cache: two caches, by size; pieces of 512 B."""

    def __init__(self):
        self.small = Cache(512, lambda size: 2 * MIB, lambda size, rest: rest >= 512)
        self.large = Cache(
            512,
            lambda size: 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB,
            lambda size, rest: rest > MIB,
        )
        self.of = {}

    def allocate(self, time, buffer, size):
        self.of[buffer] = self.small if size <= MIB else self.large
        self.of[buffer].allocate(time, buffer, size)

    def deallocate(self, buffer):
        self.of.pop(buffer).deallocate(buffer)

    @property
    def regions(self):
        return sorted(self.small.regions + self.large.regions)


def bfc():
    """JAX's BFC without preallocation: regions double from 1 MiB; pieces of 256 B."""
    state = {"next": MIB}

    def region(size):
        while state["next"] < size:
            state["next"] *= 2
        made, state["next"] = state["next"], state["next"] * 2
        return made

    return Cache(256, region, lambda size, rest: rest >= size or rest >= 128 * MIB)


def cupy():
    """CuPy's pool: sizes in units of 512 B, misses go to cudaMalloc, pieces are split freely."""
    return Cache(512, lambda size: size, lambda size, rest: rest >= 512)


def tensors(trace):
    with gzip.open(trace, "rt") as file:
        return [tuple(map(int, row.values())) for row in csv.DictReader(file)]


def through(cache, lines):
    """Returns the driver requests of `cache` when it serves `lines`."""
    events = []
    for buffer, start, end, size in lines:
        events += [(start, 1, buffer, size), (end, 0, buffer, size)]
    end = 0
    for time, begins, buffer, size in sorted(events):
        end = time
        if size == 0:
            continue
        if begins:
            cache.allocate(time, buffer, size)
        else:
            cache.deallocate(buffer)
    return [(i, time, end + 1, size) for i, (time, size) in enumerate(cache.regions)]


def at_random(count=2000, live=16, seed=16):
    """Returns lifetimes of tensors of 1 to 64 MiB; each new one frees a random one."""
    draw = random.Random(seed)
    alive, lines = [], []
    for i in range(count):
        if len(alive) == live:
            buffer, start, size = alive.pop(draw.randrange(live))
            lines.append((buffer, start, 2 * i, size))
        alive.append((i, 2 * i + 1, draw.randint(MIB, 64 * MIB)))
    return lines + [(b, start, 2 * count, size) for b, start, size in alive]


def streams(quick):
    yield "2,000 at random", at_random()
    for trace in sorted(TRACES.glob("*.csv.gz"))[: 1 if quick else None]:
        name = trace.name.removesuffix(".csv.gz")
        lines = tensors(trace)
        yield f"{name}: tensors", lines
        yield f"{name}: PyTorch's segments", through(Torch(), lines)
        yield f"{name}: BFC's regions", through(bfc(), lines)
        yield f"{name}: CuPy's blocks", through(cupy(), lines)


def peak(lines):
    steps = sorted([(s, size) for _, s, _, size in lines] + [(e, -size) for _, _, e, size in lines])
    most = now = 0
    for _, size in steps:
        now += size
        most = max(most, now)
    return most


def replay(weir, lines, capacity):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "stream.csv")
        rows = "".join(",".join(map(str, line)) + "\n" for line in lines)
        path.write_text("buffer,start,end,size\n" + rows)
        out = pathlib.Path(folder, "out.json")
        command = [weir, "replay", path, "--pool", ",".join(POOLS), "--no-search", "--json", out]
        command += ["--capacity", f"{capacity // MIB + 1}MiB"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 3):
            sys.exit(done.stderr)
        return {pool["pool"]: pool for pool in json.loads(out.read_text())["traces"][0]["pools"]}


def calls(pool):
    if not pool["completed"]:
        return "out of memory"
    mapped = f" + {pool['mapped_pages']}p" if pool["mapped_pages"] else ""
    return f"{pool['driver_calls']}{mapped}"


def cost(pool, best):
    if not pool["completed"]:
        return "out of memory"
    held = pool["peak_reserved_bytes"] / pool["peak_requested_bytes"]
    return f"{held:.2f}, {pool['ns_per_operation'] / best:.1f}x"


def show(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    weir = pathlib.Path(sys.argv[1], "tools/weir/weir")
    costs = [["requests", *POOLS]]
    made = [["requests", "number", *POOLS]]
    for name, lines in streams("--quick" in sys.argv[2:]):
        found = list(replay(weir, lines, peak(lines) * 3 // 2).values())
        times = [pool["ns_per_operation"] for pool in found if pool["completed"]]
        costs.append([name, *(cost(pool, min(times, default=1)) for pool in found)])
        made.append([name, str(len(lines)), *(calls(pool) for pool in found)])
    show(costs)
    print("  of each pool: most memory reserved over the peak requested, then time over the fastest pool's.\n")
    show(made)
    print("  number: how many requests; of each pool: driver calls, and how many pages (p) it maps.")


if __name__ == "__main__":
    main()
