"""Loops of PyTorch that weir.batch holds back, on the stand-in: with_pytorch_batches.py FEATURE.

Nothing holds them back without Weir, so there is nothing to see.
"""

import collections
import contextlib
import ctypes
import pathlib
import sys
import threading

import torch

from feature import feature, main, unavailable
from tensors import GPU, MIB, filled

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import weir  # noqa: E402

BUDGET = 256 * MIB


def require_weir():
    """Returns with a budget of BUDGET in force."""
    if not weir.active():
        unavailable("nothing holds a loop back without Weir")
    filled(1)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert weir.set_budget(BUDGET)


def slow_device(milliseconds):
    """Makes each operation of the device take at least so long."""
    driver = ctypes.CDLL("libcuda.so.1")
    driver.weir_standin_delay.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    driver.weir_standin_all_streams.restype = ctypes.c_void_p
    driver.weir_standin_delay(driver.weir_standin_all_streams(), milliseconds * 1_000_000)


def prefetching_loop(steps, batch):
    """Returns each step's result, and the most that was reserved.

    What a step uses is kept until the device is done with it, as FSDP keeps what its streams share: the memory
    cannot be reused meanwhile, however long an allocation waits. The loop asks the device at each step, and
    waits for nothing.
    """
    inputs = [torch.full((16 * MIB,), value, dtype=torch.uint8).pin_memory() for value in range(4)]
    results = torch.zeros(steps, dtype=torch.uint8).pin_memory()
    loads, computes = torch.cuda.Stream(), torch.cuda.current_stream()
    running, reserved = collections.deque(), 0
    for step in range(steps):
        with batch("train"):
            while running and running[0][0].query():
                running.popleft()
            with torch.cuda.stream(loads):
                x = torch.empty(16 * MIB, dtype=torch.uint8, device=GPU)
                x.copy_(inputs[step % 4], non_blocking=True)
            computes.wait_stream(loads)
            y = torch.empty_like(x)
            y.copy_(x)
            results[step:step + 1].copy_(y[-1:], non_blocking=True)
            running.append((computes.record_event(), x, y))
            del x, y
            reserved = max(reserved, weir.memory_info().reserved)
    torch.cuda.synchronize()
    return results.tolist(), reserved


def unmarked(kind):
    return contextlib.nullcontext()


@feature
def a_prefetching_loop_runs_out_without_batches_and_ends_with_them():
    require_weir()
    slow_device(2)
    try:
        prefetching_loop(40, unmarked)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        assert "out of memory" in str(error), error
    else:
        raise AssertionError("the loop without batches never ran out: it shows nothing")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    results, reserved = prefetching_loop(40, weir.batch)
    assert results == [step % 4 for step in range(40)]
    assert reserved <= BUDGET, f"{reserved} bytes were reserved"
    print("ran out without batches, ended with them")


def sees_tensors():
    """Whether a tensor is a block of Weir's, and not a part of a segment that PyTorch keeps."""
    tensor = torch.empty(32 * MIB, dtype=torch.uint8, device=GPU)
    held = weir.memory_info().allocated
    del tensor
    return weir.memory_info().allocated <= held - 32 * MIB


class Kept(torch.autograd.Function):
    """Its backward pass takes `mib` for a workspace, on the thread that runs it."""

    @staticmethod
    def forward(ctx, x, mib, threads):
        ctx.mib, ctx.threads = mib, threads
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.threads.add(threading.get_ident())
        del ctx.threads
        torch.empty(ctx.mib * MIB, dtype=torch.uint8, device=GPU)
        return gradient, None, None


def train_step(mib):
    """Returns the threads on which the backward pass took `mib`."""
    threads = set()
    x = torch.zeros(1024).to(GPU).requires_grad_()
    Kept.apply(x, mib, threads).backward(torch.zeros(1024).to(GPU))
    torch.cuda.synchronize()
    return threads


@feature
def memory_of_autograds_threads_is_charged_to_the_batch():
    require_weir()
    if not sees_tensors():
        unavailable("Weir sees PyTorch's segments here, not its tensors")
    for _ in range(3):  # Weir learns what a batch of the kind holds
        with weir.batch("train"):
            threads = train_step(160)
        assert threads and threading.get_ident() not in threads
    began = threading.Event()

    def second():
        torch.cuda.set_device(GPU)
        with weir.batch("train"):
            began.set()
            train_step(160)

    with weir.batch("train"):  # twice 160 MiB do not fit the budget
        other = threading.Thread(target=second)
        other.start()
        assert not began.wait(0.3), "a second batch began beside the first"
        train_step(160)
    other.join()
    assert began.is_set()


if __name__ == "__main__":
    main()
