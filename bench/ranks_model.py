#!/usr/bin/env python3
"""Prints the bytes that a step of the whole wide network exchanges, and a model of its time over GPUs.

    ranks_model.py EVIDENCE     the JSON file of a page of tools/gpu-check, with its step `bench`

The model, in which only the rates of one GPU are measured; a kernel takes its floor in EVIDENCE:

    model  (updates + sparse layer + loss + last layer's products) / R
           + bytes / link + 4 calls' latency
    data   updates + (sparse layer + loss) / R + last layer's products, each 1 / R of its time but not
           less than one pass over its weights
           + the part of bytes / link that is longer than the last product, which alone runs beside it

The middle layer is left out. docs/ranks.md shows the output.
"""

import json
import sys

INPUTS, FIRST, LAST, OUTPUTS, ROWS = 250_000, 1024, 512, 200_000, 128
LINKS = {"NVLink 4, 450 GB/s": 450e9, "PCIe 5 x16, 64 GB/s": 64e9}  # nominal, one direction
LATENCY = 20e-6  # of a collective call; assumed
RANKS = (1, 2, 4, 8)


def reduced(floats, ranks):
    """Bytes that rank 0 sends in an all_reduce: trainer/ranks/shards.hpp."""
    share = -(-floats // ranks)
    return 4 * (floats - share + (ranks - 1) * share)


def model_bytes(ranks):
    """trainer/ranks/shards.hpp, softmax."""
    return reduced(ROWS * FIRST, ranks) + 4 * ROWS * (2 + 4) * (ranks - 1) + reduced(ROWS * LAST, ranks)


def data_bytes(ranks, stored=False):
    """The same of --parallel data; stored: as if the first layer's gradient were made and reduced."""
    first = (INPUTS if stored else ROWS) * FIRST
    floats = OUTPUTS + LAST * OUTPUTS + LAST + FIRST * LAST + FIRST + first
    return reduced(floats, ranks) + reduced(2, ranks)


def floors(evidence):
    for step in evidence["steps"]:
        kernels = step.get("figures", step).get("kernels") if isinstance(step, dict) else None
        if kernels:
            return {f"{k['name']} {k['shape']}": k["floor_us"] / 1e6 for k in kernels}, kernels
    sys.exit("ranks_model.py: the file has no step `bench`")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        of, kernels = floors(json.load(file))
    copy = next(k["bytes"] / k["median_us"] * 1e6 for k in kernels if k["name"] == "copy")
    sgemm = next(k["flops"] / k["median_us"] * 1e6 for k in kernels if k["name"] == "sgemm")
    print(f"one GPU: copy {copy / 1e9:.0f} GB/s, float32 product {sgemm / 1e12:.1f} TFLOP/s (measured)")
    print()
    print(f"{'ranks':>5}  {'model, bytes':>12}  {'data, bytes':>13}  {'data if stored':>14}")
    for ranks in RANKS:
        print(f"{ranks:5}  {model_bytes(ranks):12,}  {data_bytes(ranks):13,}  {data_bytes(ranks, True):14,}")

    shared = sum(of[name] for name in ("csr_forward 128x250000x1024", "softmax_loss 128x200000",
                                       "softmax_gradient 128x200000"))  # fmt: skip
    updates = of["adam_rows 250000x1024"] + of["adam 102400000"]
    product = of["forward_fp32 128x512x200000"]
    weights = 4 * LAST * OUTPUTS / copy  # one pass over them
    for link, rate in LINKS.items():
        print(f"\n{link}, {LATENCY * 1e6:.0f} us a call (nominal and assumed, not measured)")
        print(f"{'ranks':>5}  {'model, ms':>9}  {'times':>5}  {'data, ms':>9}  {'times':>5}")
        alone = updates + shared + 3 * product
        for ranks in RANKS:
            several = ranks > 1
            model = alone / ranks + several * (model_bytes(ranks) / rate + 4 * LATENCY)
            each = max(product / ranks, weights)
            exposed = max(0.0, data_bytes(ranks) / rate - each)
            data = updates + shared / ranks + 3 * each + several * exposed
            print(f"{ranks:5}  {model * 1e3:9.2f}  {alone / model:5.2f}  {data * 1e3:9.2f}  {alone / data:5.2f}")


main()
