#!/usr/bin/env python3
"""Checks that a memory snapshot has what PyTorch's viewer needs: check_snapshot.py SNAPSHOT.

Prints the history as lines of JSON; after an error prints one line, and exits with 1.
"""

import json
import pickle
import pickletools
import sys

# The opcodes that the viewer of PyTorch reads.
KNOWN = {"PROTO", "STOP", "MARK", "APPEND", "APPENDS", "LIST", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
         "EMPTY_TUPLE", "EMPTY_LIST", "EMPTY_DICT", "NEWFALSE", "NEWTRUE", "NONE", "BINGET", "LONG_BINGET",
         "BINPUT", "LONG_BINPUT", "MEMOIZE", "FRAME", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
         "SHORT_BINUNICODE", "BINUNICODE", "SETITEM", "SETITEMS", "DICT"}


def check(holds, what):
    if not holds:
        sys.exit(f"check_snapshot: {what}")


def check_segments(snapshot):
    for segment in snapshot["segments"]:
        check(segment["device"] < len(snapshot["device_traces"]), "a segment of no device")
        at, active = segment["address"], 0
        for block in segment["blocks"]:
            check(block["address"] == at, "a block that does not begin where the one before ends")
            check(0 <= block["requested_size"] <= block["size"], "a block that is smaller than asked for")
            check(isinstance(block["frames"], list), "a block without frames")
            active += block["size"] if block["state"] == "active_allocated" else 0
            at += block["size"]
        check(at - segment["address"] == segment["total_size"], "blocks that are not the segment's size")
        check(active == segment["active_size"], "an active size that is not the blocks'")


def check_trace(snapshot, device):
    """Goes back from the end, as the viewer does: each block lies in a segment at each moment."""
    segments = {s["address"]: s["total_size"] for s in snapshot["segments"] if s["device"] == device}
    blocks = {b["address"]: b["requested_size"] for s in snapshot["segments"] if s["device"] == device
              for b in s["blocks"] if b["state"] == "active_allocated"}
    trace = snapshot["device_traces"][device]
    check(all(a["time_us"] <= b["time_us"] for a, b in zip(trace, trace[1:])), "times that go back")
    for number in range(len(trace) - 1, -1, -1):
        entry = trace[number]
        for frame in entry["frames"]:
            check(set(frame) == {"name", "filename", "line"}, "a frame of other members")
        action, address, size = entry["action"], entry.get("addr"), entry["size"]
        if action == "free_completed":
            before = trace[number - 1]
            check(number > 0 and before["action"] == "free_requested" and before["addr"] == address,
                  "a free that is not completed where it is asked for")
            check(address not in blocks, "a free of what is freed again")
            check(any(at <= address < at + length for at, length in segments.items()),
                  "a block outside of all segments")
            blocks[address] = size
        elif action == "alloc":
            check(blocks.pop(address, None) == size, "an allocation of another size than its block")
        elif action == "segment_alloc":
            check(segments.pop(address, None) == size, "a segment of another size at the end")
        elif action == "segment_free":
            check(address not in segments, "a segment that is freed twice")
            segments[address] = size
        else:
            check(action in ("free_requested", "oom"), f"an action {action}")
    check(not [e for e in trace if e["action"] == "segment_alloc"] or not segments, "segments from nowhere")


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    unknown = {op.name for op, _, _ in pickletools.genops(data)} - KNOWN
    check(not unknown, f"opcodes that the viewer does not read: {unknown}")
    snapshot = pickle.loads(data)
    check_segments(snapshot)
    for device, trace in enumerate(snapshot["device_traces"]):
        check_trace(snapshot, device)
        for entry in trace:
            print(json.dumps({"device": device, **entry}))


main()
