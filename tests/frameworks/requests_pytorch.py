"""Asks PyTorch for the memory of a training, step by step: requests_pytorch.py gpt|convolutional|empty STEPS.

Only the requests are a training's: nothing is computed, which would need kernels. Each step has another shape, as
with sentences or pictures of several lengths. A step that runs out of memory is given up. Prints a line of JSON.

gpt: 12 layers of width 512, batches of 8 sentences of 64 to 256 tokens, bfloat16; keys and values of a text that
grows token by token, as in generation, live beside it.
convolutional: a network of four stages, batches of 2 to 16 pictures of 96 to 224 pixels, with workspaces that are
freed at once.
empty: no training; the host's time for a tensor that is made and freed.
"""

import json
import random
import statistics
import sys
import time

import torch

MIB = 1 << 20
random_of = random.Random(1)


def empty(*shape):
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda")


def gpt(state, layers=12, width=512, heads=8, batch=8):
    length = random_of.randrange(64, 257, 8)
    state.setdefault("weights", [empty(12 * width, width) for _ in range(layers)])
    texts = state.setdefault("texts", [[] for _ in range(layers)])
    kept = []
    for _ in range(layers):
        layer = [empty(batch, length, width), empty(batch, length, 3 * width)]
        scores = empty(batch, heads, length, length)
        layer += [empty(batch, heads, length, length), empty(batch, length, width)]
        del scores
        kept.append([*layer, empty(batch, length, 4 * width), empty(batch, length, 4 * width)])
    logits = empty(batch, length, 8192)
    gradient = torch.empty_like(logits)
    del logits
    gradients = []
    while kept:
        for tensor in reversed(kept.pop()):
            gradient = torch.empty_like(tensor)
        gradients.append(torch.empty_like(state["weights"][0]))
    del gradient
    for text in texts:
        longer = empty(2, batch, 16 * (1 + len(text) % 24), width)
        text[:] = [longer] * (len(text) % 24 + 1)


def convolutional(state, stages=((64, 2, 4), (128, 4, 4), (256, 8, 6), (512, 16, 3))):
    batch, side = random_of.randrange(2, 17, 2), random_of.randrange(96, 225, 32)
    state.setdefault("weights", [empty(width, width, 3, 3) for width, _, blocks in stages for _ in range(2 * blocks)])
    kept = []
    for width, divisor, blocks in stages:
        for _ in range(blocks):
            for _ in range(2):
                workspace = empty(random_of.choice((1, 3, 9, 17)) * MIB)
                kept.append(empty(batch, width, side // divisor, side // divisor))
                del workspace
    gradient = None
    while kept:
        workspace = empty(random_of.choice((1, 5, 13)) * MIB)
        gradient = torch.empty_like(kept.pop())
        del workspace
    del gradient


def steps_of(step, count):
    state, failed = {}, 0
    for _ in range(count):
        try:
            step(state)
        except torch.cuda.OutOfMemoryError:
            failed += 1
    return {"failed": failed, "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved()}


def time_of_empty(rounds, each=2000):
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(each):
            torch.empty(MIB, dtype=torch.uint8, device="cuda")
        found.append((time.perf_counter() - start) / each)
    return {"nanoseconds": 1e9 * statistics.median(found)}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("gpt", "convolutional", "empty"):
        sys.exit("usage: requests_pytorch.py gpt|convolutional|empty STEPS")
    name, count = sys.argv[1], int(sys.argv[2])
    torch.cuda.init()
    print(json.dumps(time_of_empty(count) if name == "empty" else steps_of(globals()[name], count)))


main()
