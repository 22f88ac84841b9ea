#!/usr/bin/env python3
"""Converts a memory snapshot of PyTorch to a CSV of lifetimes that `weir replay` reads.

The snapshot is what torch.cuda.memory._dump_snapshot writes while
torch.cuda.memory._record_memory_history is on. A buffer begins where its allocation is recorded and
ends where its free is asked for. One that was allocated before the history begins is put at the front;
one that the history does not see freed lives to the end. Sizes are those asked for. Streams are
numbered in the order in which they come up; 0 is the default one. Needs nothing but Python.
"""

import argparse
import gzip
import os
import pickle
import sys
from typing import NamedTuple

# A snapshot's state of a block in use. Blocks in other states are free or about to be.
IN_USE = "active_allocated"


class Lifetimes:
    """Follows allocations and frees. Each is an event; events count from 0.

    A reused address is a new buffer. Allocations of zero bytes are ignored and are no events. A buffer
    that is never freed ends one past the last event.
    """

    def __init__(self):
        self.events = 0
        self.rows = []  # [start, end or None, size, stream], in the order of start
        self._live = {}  # address -> row
        self._empty = set()

    def allocate(self, address, size, stream=0):
        if address in self._live or address in self._empty:
            raise ValueError(f"{address:#x} is allocated twice")
        if size == 0:
            self._empty.add(address)
            return
        row = [self.events, None, size, stream]
        self.rows.append(row)
        self._live[address] = row
        self.events += 1

    def free(self, address):
        """Ends the buffer at `address` and returns its size, or None if there is none."""
        if address in self._empty:
            self._empty.remove(address)
            return 0
        row = self._live.pop(address, None)
        if row is None:
            return None
        row[1] = self.events
        self.events += 1
        return row[2]

    def peak(self):
        """Returns the most bytes live at once."""
        changes = [0] * self.events
        for start, end, size, _ in self.rows:
            changes[start] += size
            if end is not None:
                changes[end] -= size
        total = most = 0
        for change in changes:
            total += change
            most = max(most, total)
        return most

    def csv(self):
        """Returns what `weir replay` reads."""
        return "buffer,start,end,size,stream\n" + "".join(
            f"{buffer},{start},{self.events if end is None else end},{size},{stream}\n"
            for buffer, (start, end, size, stream) in enumerate(self.rows))


class BadInput(Exception):
    """The snapshot is invalid; the message says where, and what is allowed."""


class Plain(pickle.Unpickler):
    """Reads containers, numbers and strings only: any other class in a pickle would be called."""

    def find_class(self, module, name):
        raise BadInput(f"names {module}.{name}, and a snapshot has only containers, numbers and strings")

    def persistent_load(self, pid):
        raise BadInput("refers to something outside of it, which a snapshot does not")


class Change(NamedTuple):
    where: str
    allocates: bool
    address: int
    size: int
    stream: int


class Converted(NamedTuple):
    lifetimes: Lifetimes
    device: int
    before: int  # buffers allocated before the history begins
    before_freed: int  # those of them freed in the history
    after: int  # blocks in use that were allocated after the history ended: left out
    ignored: int  # entries that are neither allocation nor free


def read(path):
    with open(path, "rb") as file:
        try:
            return Plain(file).load()
        except (BadInput, OSError):
            raise
        # A truncated or invalid pickle raises exceptions of many types.
        except Exception as error:
            raise BadInput(f"is not a whole pickle: {error}") from error


def field(entry, where, name, kind=int):
    """Returns member `name` of an entry. A number must be at least 0."""
    if not isinstance(entry, dict):
        raise BadInput(f"{where} is {shown(entry)}, and has to be a dict")
    value = entry.get(name)
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value < 0):
        allowed = {int: "a whole number from 0 on", str: "a string", list: "a list"}[kind]
        raise BadInput(f"{where}: {name!r} is {shown(value)}, and has to be {allowed}")
    return value


def shown(value):
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def pick_device(traces, device):
    """Returns the requested device, or the only one with a history."""
    have = [number for number, trace in enumerate(traces) if trace]
    if device is None and len(have) > 1:
        raise BadInput(f"has the history of devices {', '.join(map(str, have))}: name one by --device")
    if device is None and not have:
        raise BadInput("has no history: it is recorded from _record_memory_history on")
    if device is not None and device not in have:
        raise BadInput(f"has no history of device {device}, but of: {', '.join(map(str, have)) or 'none'}")
    return have[0] if device is None else device


def changes(trace, device):
    """Returns the allocations and frees of a history, and the number of other entries.

    A free counts where it is requested. If only its completion is recorded, it counts there: the history
    may skip requests, or begin between the two.
    """
    found, asked, ignored = [], set(), 0
    for number, entry in enumerate(trace):
        where = f"device_traces[{device}][{number}]"
        action = field(entry, where, "action", str)
        if action not in ("alloc", "free_requested", "free_completed"):
            ignored += 1
            continue
        change = Change(where, action == "alloc", field(entry, where, "addr"),
                        field(entry, where, "size"), field(entry, where, "stream"))
        if action == "free_completed" and change.address in asked:
            asked.remove(change.address)
            continue
        if action == "free_requested":
            asked.add(change.address)
        found.append(change)
    return found, ignored


def freed_from_before(found):
    """Returns the frees of buffers allocated before the history begins. Refuses a history that allocates
    an address in use or frees one that is not."""
    in_use, before = {}, []
    for change in found:
        since = in_use.get(change.address)
        if change.allocates and since is not None and since.allocates:
            raise BadInput(f"{change.where} allocates {change.address:#x}, which {since.where} has allocated "
                           "and nothing has freed")
        if not change.allocates and since is not None and not since.allocates:
            raise BadInput(f"{change.where} frees {change.address:#x}, which {since.where} has freed")
        if not change.allocates and since is None:
            before.append(change)
        in_use[change.address] = change
    return before


def blocks_in_use(snapshot, device):
    """Yields the blocks in use at the snapshot as allocations."""
    for number, segment in enumerate(field(snapshot, "the snapshot", "segments", list)):
        where = f"segments[{number}]"
        at, stream = field(segment, where, "address"), field(segment, where, "stream")
        if segment.get("device", device) != device:
            continue
        for place, block in enumerate(field(segment, where, "blocks", list)):
            inside = f"{where}.blocks[{place}]"
            size = field(block, inside, "size")
            if field(block, inside, "state", str) == IN_USE:
                # Older snapshots have neither.
                address = field(block, inside, "address") if "address" in block else at
                asked = field(block, inside, "requested_size") if "requested_size" in block else size
                yield Change(inside, True, address, asked, stream)
            at += size


def convert(snapshot, device=None):
    """Converts a snapshot of torch.cuda.memory._snapshot() to lifetimes."""
    traces = field(snapshot, "the snapshot", "device_traces", list)
    for number, trace in enumerate(traces):
        if not isinstance(trace, list):
            raise BadInput(f"device_traces[{number}] is {shown(trace)}, and has to be a list")
    device = pick_device(traces, device)
    found, ignored = changes(traces[device], device)
    freed = freed_from_before(found)

    last = {change.address: change for change in found}
    blocks = list(blocks_in_use(snapshot, device))
    never_seen = [block for block in blocks if block.address not in last]
    after = [block for block in blocks if block.address in last and not last[block.address].allocates]

    lifetimes, streams = Lifetimes(), {0: 0}
    for change in [free._replace(allocates=True) for free in freed] + never_seen + found:
        if change.allocates:
            stream = streams.setdefault(change.stream, len(streams))
            lifetimes.allocate(change.address, change.size, stream)
        else:
            lifetimes.free(change.address)
    before = len(freed) + len(never_seen)
    return Converted(lifetimes, device, before, len(freed), len(after), ignored)


def report(converted):
    """Summarises a conversion in a line."""
    buffers, peak = len(converted.lifetimes.rows), converted.lifetimes.peak()
    text = f"device {converted.device}: {buffers} buffers, at most {peak} bytes of them at once"
    if converted.before:
        text += (f"; {converted.before} allocated before the history begins, "
                 f"{converted.before_freed} of them freed in it")
    if converted.after:
        text += f"; {converted.after} allocated after the history ends, left out"
    return text + f"; {converted.ignored} entries that neither allocate nor free"


class Parser(argparse.ArgumentParser):
    """Reports help that cannot be printed, which argparse ignores."""

    def print_help(self, file=None):
        try:
            print(self.format_help(), end="", file=file or sys.stdout, flush=True)
        except OSError as error:
            print(f"snapshot_to_csv: standard output cannot be written ({error.strerror})", file=sys.stderr)
            os._exit(1)  # at a normal exit Python would flush again


def main():
    parser = Parser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("snapshot", help="the file that torch.cuda.memory._dump_snapshot wrote")
    parser.add_argument("csv", help="the file to write, gzipped if its name ends in .gz")
    parser.add_argument("--device", type=int, help="the device whose history to convert; required if several have one")
    args = parser.parse_args()
    try:
        if os.path.exists(args.csv) and os.path.samefile(args.snapshot, args.csv):
            raise BadInput(f"{args.csv} is the same file, which the CSV would replace")
        converted = convert(read(args.snapshot), args.device)
        text = converted.lifetimes.csv().encode("ascii")
        with open(args.csv, "wb") as out:
            out.write(gzip.compress(text, mtime=0) if args.csv.endswith(".gz") else text)  # the same bytes each time
    except BadInput as error:
        print(f"snapshot_to_csv: {args.snapshot}: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"snapshot_to_csv: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(2)
    print(f"{args.csv}: {report(converted)}", file=sys.stderr)


if __name__ == "__main__":
    main()
