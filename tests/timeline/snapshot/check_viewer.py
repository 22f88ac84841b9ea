#!/usr/bin/env python3
"""Gives a memory snapshot to PyTorch's own reader, torch.cuda._memory_viz: check_viewer.py SNAPSHOT.

Prints its results as JSON. Exits with 77 (left out) without PyTorch. Loads only that file, which needs
nothing else of PyTorch.
"""

import base64
import importlib.util
import json
import pathlib
import pickle
import re
import sys

LEFT_OUT = 77
# How torch.cuda._memory_viz.trace words each action.
LINES = {"alloc": r"\w+ = \w+\[\d+:", "free_requested": r"del ", "free_completed": r"# free completed for ",
         "segment_alloc": r"\w+ = cudaMalloc\(", "segment_free": r"cudaFree\(",
         "oom": r"raise OutOfMemoryError "}


def load_reader():
    torch = importlib.util.find_spec("torch")
    for folder in (torch.submodule_search_locations or []) if torch else []:
        path = pathlib.Path(folder, "cuda", "_memory_viz.py")
        if path.exists():
            spec = importlib.util.spec_from_file_location("memory_viz", path)
            reader = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(reader)
            return reader
    print("check_viewer: there is no PyTorch here")
    sys.exit(LEFT_OUT)


def memory(reader, snapshot):
    """Returns the bytes of each state in `memory`'s flame graph: gaps are what rounding added."""
    sums = {}
    for line in reader.memory(snapshot, format_flamegraph=str).splitlines():
        where, size = line.rsplit(" ", 1)
        state = "gaps" if where.endswith("<gaps>") and ";active" in where else where.split(";")[1]
        sums[state] = sums.get(state, 0) + int(size)
    return sums


def trace(reader, snapshot, device):
    """Returns how many lines of each action `trace` writes for a device."""
    text = reader.trace({**snapshot, "device_traces": [snapshot["device_traces"][device]]})
    return {action: len(re.findall("^" + words, text, re.M)) for action, words in LINES.items()}


def check_pages(reader, snapshot):
    """The pages that draw it contain it completely."""
    for page in (reader.trace_plot(snapshot), reader.trace_plot(snapshot, plot_segments=True),
                 reader.segment_plot(snapshot)):
        files = json.loads(re.search(r"local_files = (.*)", page)[1])
        if pickle.loads(base64.b64decode(files[0]["base64"])) != snapshot:
            sys.exit("check_viewer: a page that has not the snapshot")


def main():
    reader = load_reader()
    with open(sys.argv[1], "rb") as file:
        snapshot = pickle.load(file)
    summary = reader.segsum(snapshot)  # which checks that segments are the sum of their blocks
    check_pages(reader, snapshot)
    print(json.dumps({"segments": int(re.search(r"^segments: (\d+)", summary, re.M)[1]),
                      "memory": memory(reader, snapshot),
                      "traces": [trace(reader, snapshot, device)
                                 for device in range(len(snapshot["device_traces"]))]}))


main()
