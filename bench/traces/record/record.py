#!/usr/bin/env python3
"""Records a trace of this folder's parent. Needs PyTorch."""

import argparse
import importlib
import pathlib
import sys

# The module of each, its function, and its steps.
WORKLOADS = {
    "conv_varying_images": ("conv_varying_images", "run", 16),
    "gpt_fixed": ("gpt_workloads", "fixed", 10),
    "gpt_recompute_lora": ("gpt_workloads", "recompute_lora", 12),
    "gpt_varying_lengths": ("gpt_workloads", "varying_lengths", 20),
    "kv_cache": ("kv_cache", "run", 96),
    "moe_uneven": ("gpt_workloads", "moe_uneven", 12),
    "small_gpt_growing": ("gpt_workloads", "growing", 24),
    "small_gpt_recompute": ("gpt_workloads", "recompute", 24),
    "small_gpt_tiny": ("gpt_workloads", "tiny", 24),
    "small_kv_cache": ("kv_cache", "small", 40),
    "small_kv_wide": ("kv_cache", "wide", 40),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--steps", type=int, help="number of steps, if not that of the trace")
    parser.add_argument("--into", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the folder for the CSV and the JSON of a run on the CPU")
    parser.add_argument("--cuda", type=pathlib.Path, metavar="CSV",
                        help="run on a GPU, and write this file, gzipped if its name ends in .gz")
    args = parser.parse_args()
    module, function, steps = WORKLOADS[args.workload]
    steps = steps if args.steps is None else args.steps
    if steps <= 0:
        parser.error("--steps must be above zero")
    recorder = importlib.import_module("recorder")  # first: it prepares PyTorch
    run = getattr(importlib.import_module(module), function)
    if args.cuda is None:
        recorder.record_on_cpu(args.workload, run, steps, args.into)
    elif not recorder.record_on_gpu(run, steps, args.cuda):
        print("record.py: PyTorch finds no GPU that it can use", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
