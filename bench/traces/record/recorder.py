"""Records the lifetimes of the tensors of a workload: on the CPU from PyTorch's profiler, on a GPU from PyTorch's
own history of its memory. Unlike the profiler's traces, the history has streams, and the requests of cuBLAS,
cuDNN and GPU kernels to PyTorch's allocator.

A workload is a function `run(device, steps, step)`. It makes its model, and calls `step(shape)` before
each step. When it returns, everything that a training script would keep is still referenced.
"""

import ctypes
import json
import os
import pathlib
import sys
from typing import NamedTuple

# Large pages: with small ones, page faults would dominate a run's time. PyTorch reads this once.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import torch
from torch._C._profiler import _EventType
from torch.profiler import ProfilerActivity, profile, record_function

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools" / "replay" / "read"))
from lifetimes import CsvFile, Lifetimes  # noqa: E402
import snapshot_to_csv  # noqa: E402

M_MMAP_THRESHOLD = -3  # of mallopt(3)
SEED = 1
STEP = "workload step: "
# Kernels that allocate memory to rearrange their operands for the processor's matrix instructions,
# some 500 times per call. These are not tensors, and a GPU kernel would not allocate them.
REARRANGING = {"aten::_scaled_dot_product_flash_attention_for_cpu_backward"}


def record_on_cpu(name, run, steps, into):
    """Writes NAME.csv.gz to the folder `into`, and NAME.json with the begin of each step."""
    # Return large blocks to the system when they are freed. Otherwise the C library's heap would
    # keep them, and a run would hold several times what it requests: the very fault that the traces
    # are about.
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 1 << 20)
    torch.set_num_threads(2)
    torch.manual_seed(SEED)
    lifetimes, marks, left_out = lifetimes_of(profiled(run, steps))
    with CsvFile(into / f"{name}.csv.gz") as out:
        lifetimes.write(out)
    beside = {
        "workload": name,
        "torch": torch.__version__,
        "device": "cpu",
        "events": lifetimes.events,
        "left_out": left_out,
        "steps": marks,
    }
    (into / f"{name}.json").write_text(json.dumps(beside, indent=1) + "\n")
    peak = lifetimes.peak() / 2**30
    print(f"{name}: {steps} steps, {len(lifetimes.rows)} buffers, peak {peak:.2f} GiB requested")


def record_on_gpu(run, steps, path):
    """Writes the CSV at `path`. Returns whether there is a GPU."""
    if not torch.cuda.is_available():
        return False
    torch.manual_seed(SEED)
    converted = snapshot_to_csv.convert(history_of(run, steps))
    with snapshot_to_csv.CsvFile(path) as out:
        converted.lifetimes.write(out, streams=True)
    print(f"{path}: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {snapshot_to_csv.report(converted)}")
    return True


def history_of(run, steps):
    """Returns the snapshot of a run whose result is still held, so that it includes what outlives the steps."""
    # Nothing else may have allocated before: the trace would show it as there from the beginning.
    torch.cuda.memory._record_memory_history("all", context=None)
    kept = run("cuda", steps, lambda shape: print(f"  {shape}", file=sys.stderr, flush=True))
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    del kept
    return snapshot


class MemoryEvent(NamedTuple):
    """An allocation, or a free with negative bytes."""

    time: int
    address: int
    bytes: int
    total: int  # bytes allocated now, by the profiler's count
    kernel: str  # the operator that allocated it


class StepEvent(NamedTuple):
    time: int
    shape: str


def profiled(run, steps):
    """Returns the memory events and the steps of a run, of all threads, in order of time."""
    def step(shape):
        print(f"  {shape}", file=sys.stderr, flush=True)
        with record_function(STEP + shape):
            pass

    # Begins before the model is made: earlier allocations would have no start.
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        kept = run("cpu", steps, step)
    del kept
    found = []
    unread = [(root, "") for root in profiler.profiler.kineto_results.experimental_event_tree()]
    while unread:
        # Do not ask for an event's parent: it dies with the profiler.
        event, parent = unread.pop()
        unread.extend((child, event.name) for child in event.children)
        time = event.start_time_ns
        if event.tag == _EventType.Allocation:
            of = event.extra_fields
            found.append(MemoryEvent(time, of.ptr, of.alloc_size, of.total_allocated, parent))
        elif event.name.startswith(STEP):
            found.append(StepEvent(time, event.name[len(STEP):]))
    return sorted(found, key=lambda event: event.time)


def lifetimes_of(events):
    """Returns the lifetimes, the steps as {"event", "shape"}, and the number of ignored allocations.

    Compares the profiler's own count of allocated bytes at every event: a missing or out-of-order event
    would make the two differ.
    """
    lifetimes, steps, rearranging, total, left_out = Lifetimes(), [], {}, 0, 0
    for number, event in enumerate(events):
        if isinstance(event, StepEvent):
            steps.append({"event": lifetimes.events, "shape": event.shape})
            continue
        size = abs(event.bytes)
        if event.bytes < 0:
            freed = rearranging.pop(event.address, None) or lifetimes.free(event.address)
            if freed != size:
                raise SystemExit(f"event {number} frees {size} bytes where {freed} are allocated")
        elif event.kernel in REARRANGING:
            rearranging[event.address] = size
            left_out += 1
        else:
            lifetimes.allocate(event.address, size)
        total += event.bytes
        if total != event.total:
            raise SystemExit(f"after event {number} {total} bytes are allocated, and {event.total} by the "
                             "profiler's count")
    return lifetimes, steps, left_out
