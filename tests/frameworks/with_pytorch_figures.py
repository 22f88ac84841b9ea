"""PyTorch's figures of its memory on the stand-in, step by step: with_pytorch_figures.py FEATURE.

Statistics, snapshots, histories and profiles do not depend on who serves the tensors. What does, such as segments,
is a figure of the cache.
"""

import os
import pickle
import tempfile

import torch

from feature import feature, main, of_the_cache
from tensors import GPU, check_plug

# Native's figures contain the rest of a block that it does not split, up to 1 MiB. None of these leaves one.
SIZES = (1, 511, 512, 513, 4096, 1 << 20, 2 << 20, 4 << 20, 12 << 20, 34 << 20)
KINDS = ("allocation", "allocated_bytes", "requested_bytes")


def empty(size):
    return torch.empty(size, dtype=torch.uint8, device=GPU)


def series(step):
    """Prints every statistic of tensors."""
    found = torch.cuda.memory_stats()
    names = [name for name in sorted(found) if name.startswith(KINDS)]
    print(step, *(found[name] for name in names), found["num_ooms"], torch.cuda.memory_allocated(),
          torch.cuda.max_memory_allocated())
    of_the_cache(step, found["num_alloc_retries"], found["reserved_bytes.all.current"])


@feature
def empty_tensors():
    assert empty(0).data_ptr() == 0
    kept = [empty(size) for size in SIZES for _ in range(3)]
    assert all(tensor.data_ptr() % 512 == 0 for tensor in kept)
    spans = sorted((tensor.data_ptr(), tensor.data_ptr() + tensor.numel()) for tensor in kept)
    assert all(one[1] <= other[0] for one, other in zip(spans, spans[1:])), "two tensors overlap"
    print(torch.cuda.memory_allocated())


@feature
def statistics_step_by_step():
    kept = []
    for number, size in enumerate(SIZES * 3):
        kept.append(empty(size))
        if number % 3 == 2:
            del kept[number // 3]
        if number % 7 == 6:
            torch.cuda.reset_peak_memory_stats()
        if number % 11 == 10:
            torch.cuda.reset_accumulated_memory_stats()
        series(number)
    kept.clear()
    series("freed")
    torch.cuda.empty_cache()
    series("emptied")


@feature
def statistics_of_an_error():
    kept = empty(3 << 20)
    for _ in range(2):
        try:
            empty(1 << 40)
        except torch.cuda.OutOfMemoryError as error:
            print(str(error).partition(" capacity of ")[0])
    series("errors")
    assert kept.numel() == 3 << 20


@feature
def statistics_of_two_streams():
    side = torch.cuda.Stream()
    for number in range(6):
        tensor = empty(SIZES[-1 - number])
        tensor.record_stream(side)
        series(number)
        del tensor
        torch.cuda.synchronize()
        empty(1)
        series(number)


@feature
def memory_summary():
    kept = [empty(size) for size in SIZES]
    rows = torch.cuda.memory_summary().splitlines()
    found = [row for row in rows if row.strip("| ").startswith(("Allocated memory", "Allocations", "Requested memory"))]
    assert len(found) == 3, rows
    print("\n".join(found))
    del kept


def blocks(snapshot):
    return [block for segment in snapshot for block in segment["blocks"]]


@feature
def snapshot_has_every_tensor():
    kept = [empty(size) for size in SIZES]
    del kept[::3]
    found = torch.cuda.memory_snapshot()
    live = [block for block in blocks(found) if block["state"] == "active_allocated"]
    assert {block["address"] for block in live} == {tensor.data_ptr() for tensor in kept}
    print(sorted(block["requested_size"] for block in live))
    for segment in found:
        assert sum(block["size"] for block in segment["blocks"]) == segment["total_size"], segment
        active = [block["size"] for block in segment["blocks"] if block["state"] == "active_allocated"]
        assert sum(active) == segment["allocated_size"], segment
    assert sum(segment["total_size"] for segment in found) == torch.cuda.memory_reserved()
    print(sum(segment["allocated_size"] for segment in found))


@feature
def snapshot_names_a_stream():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        there = empty(3 << 20)
    here = empty(5 << 20)
    found = torch.cuda.memory_snapshot()
    streams = {tensor.numel(): segment["stream"] for tensor in (here, there) for segment in found
               if segment["address"] <= tensor.data_ptr() < segment["address"] + segment["total_size"]}
    of_the_cache(streams[5 << 20], streams[3 << 20] == side.cuda_stream)  # a segment of Weir's serves all streams


def with_a_name_of_its_own(size):
    return empty(size)


@feature
def dumped_snapshot_has_frames():
    torch.cuda.memory._record_memory_history(max_entries=1000, stacks="python")
    kept = [with_a_name_of_its_own(size) for size in SIZES]
    del kept[::2]
    torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        torch.cuda.memory._dump_snapshot(path)
        with open(path, "rb") as file:
            found = pickle.load(file)
    torch.cuda.memory._record_memory_history(enabled=None)
    trace = found["device_traces"][0]
    for event in trace:
        if event["action"] in ("alloc", "free_requested", "free_completed"):
            frames = [frame["name"] for frame in event["frames"]]
            print(event["action"], event["size"], "with_a_name_of_its_own" in frames,
                  "dumped_snapshot_has_frames" in frames)
    of_the_cache([event["action"] for event in trace if event["action"].startswith("segment")])
    live = [block for block in blocks(found["segments"]) if block["state"] == "active_allocated"]
    print(sorted((block["requested_size"], "with_a_name_of_its_own" in {frame["name"] for frame in block["frames"]})
                 for block in live))


@feature
def history_of_an_error():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    try:
        empty(1 << 40)
    except torch.cuda.OutOfMemoryError:
        pass
    print([event["size"] for event in torch.cuda.memory._snapshot()["device_traces"][0] if event["action"] == "oom"])
    torch.cuda.memory._record_memory_history(enabled=None)


@feature
def history_keeps_its_last_entries():
    torch.cuda.memory._record_memory_history(max_entries=10)
    for number in range(30):
        empty(1024 * (number + 1))
    trace = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    print(len(trace), trace[-1]["action"], trace[-1]["size"])


@feature
def profiler_of_memory():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        kept = [empty(size) for size in SIZES]
        del kept[::2]
    usage = [event for event in profile.events() if getattr(event, "device_memory_usage", 0)]
    print([(event.name, event.device_memory_usage) for event in usage])
    del kept


if __name__ == "__main__":
    main(check_plug)
