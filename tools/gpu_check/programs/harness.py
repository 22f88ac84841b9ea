"""Shared by the programs here: flags, exit codes and the one line of JSON that they print.

Independent of Weir: programs run unmodified, and the runner sets up everything around them.

    exit 0    finished
    exit 75   ran out of memory; prints the line anyway
    exit 77   something is missing on this machine; one line on standard error names it
"""

import argparse
import importlib
import json
import os
import sys
import time

OUT_OF_MEMORY = 75
MISSING = 77

# Untimed first steps, which choose kernels, load modules and fill pools.
WARM_UP = 3


class Missing(Exception):
    """The machine lacks what the program needs."""


class OutOfMemory(Exception):
    """The framework ran out of memory."""


def need(module, name):
    """Imports a framework. Raises Missing if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Missing(f"{name} is not there: {error}") from error


def flags(about, steps):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a quick run on a cpu")
    return parser


def torch_ready(device):
    """Imports PyTorch, set up so that two runs give the same bits."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch = need("torch", "PyTorch")
    if device == "cuda" and not torch.cuda.is_available():
        raise Missing("PyTorch is there, and finds no GPU that it can use")
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    if device == "cpu":
        torch.set_num_threads(1)
    return torch


def use_allocator(torch, library):
    """Makes PyTorch allocate through two functions of `library`."""
    memory = torch.cuda.memory
    allocator = memory.CUDAPluggableAllocator(library, "weir_torch_alloc", "weir_torch_free")
    memory.change_current_allocator(allocator)


def measure(args, step, settle=lambda: None):
    """Calls `step(number)`, which returns a loss, for each step. Returns the losses and the time of the steps after the
    first few. `settle` waits for the device, so that it is idle at both ends. Reads the losses only at the end, because
    a loop that reads each one never runs ahead."""
    losses, started = [], None
    for number in range(args.steps):
        if number == WARM_UP:
            settle()
            started = time.perf_counter()
        losses.append(step(number))
    seconds = None
    if started is not None:
        settle()
        seconds = time.perf_counter() - started
    return {
        "losses": [float(loss).hex() for loss in losses],
        "seconds": seconds,
        "timed_steps": max(0, args.steps - WARM_UP),
    }


def descend(optimizer, loss):
    """Takes a step of training. Returns the loss."""
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return loss.detach()


def torch_figures(torch, args, step):
    """Returns what a PyTorch program of such steps prints."""
    on_gpu = args.device == "cuda"
    settle = torch.cuda.synchronize if on_gpu else lambda: None
    figures = {"framework": f"PyTorch {torch.__version__}", **measure(args, step, settle)}
    if on_gpu:
        figures["allocator"] = torch.cuda.get_allocator_backend()
        # A pluggable allocator keeps no statistics.
        if figures["allocator"] != "pluggable":
            figures["peak_reserved_bytes"] = torch.cuda.max_memory_reserved()
    return figures


# Errors without a class of their own: JAX's, and those of calls beside the allocator, such as
# loading a kernel into a full device.
FULL = ("RESOURCE_EXHAUSTED", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def is_out_of_memory(error):
    return type(error).__name__ == "OutOfMemoryError" or any(text in str(error) for text in FULL)


def main(name, run, parser):
    """Runs `run(args)`, which returns figures. Ends the process with the exit codes above."""
    args = parser.parse_args()
    if args.steps <= 0:
        parser.error("--steps must be above zero")
    line = {"program": name, "device": args.device, "steps": args.steps, "outcome": "finished"}
    code = 0
    try:
        line.update(run(args))
    except Missing as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(MISSING)
    except Exception as error:  # noqa: BLE001: which class it is depends on the framework
        if not is_out_of_memory(error):
            raise
        line["outcome"] = "out of memory"
        line["said"] = str(error).splitlines()[0] if str(error) else type(error).__name__
        code = OUT_OF_MEMORY
    print(json.dumps(line), flush=True)
    sys.exit(code)
