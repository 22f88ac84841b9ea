"""Records a workload on a GPU, from PyTorch's own history of its memory.

Unlike the CPU's traces, the history has streams, and the requests of cuBLAS, cuDNN and GPU kernels to
PyTorch's allocator.
"""

import argparse
import importlib
import pathlib
import sys

import recorder  # first: it knows where snapshot_to_csv is
from recorder import torch
import snapshot_to_csv

WORKLOADS = ("conv_varying_images", "gpt_fixed", "gpt_recompute_lora", "gpt_varying_lengths",
             "kv_cache", "moe_uneven", "small_gpt_growing", "small_gpt_recompute", "small_gpt_tiny",
             "small_kv_cache", "small_kv_wide")


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("csv", type=pathlib.Path, help="the file to write, gzipped if its name ends in .gz")
    parser.add_argument("--steps", type=int, help="number of steps, if not that of the CPU trace")
    args = parser.parse_args()
    workload = importlib.import_module(args.workload)
    steps = workload.STEPS if args.steps is None else args.steps
    if steps <= 0:
        parser.error("--steps must be above zero")
    if not torch.cuda.is_available():
        print("cuda_history: PyTorch finds no GPU that it can use", file=sys.stderr)
        sys.exit(2)
    torch.manual_seed(recorder.SEED)
    converted = snapshot_to_csv.convert(history_of(workload.run, steps))
    with snapshot_to_csv.CsvFile(args.csv) as out:
        converted.lifetimes.write(out, streams=True)
    print(f"{args.csv}: {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, "
          f"{snapshot_to_csv.report(converted)}")


if __name__ == "__main__":
    main()
