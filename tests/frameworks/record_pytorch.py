"""Asks PyTorch for the memory of a transformer's training, for a log of requests: record_pytorch.py [STEPS].

    WEIR_ALLOC_LOG=run.log weir run --allocator async -- python record_pytorch.py 20

Only the requests are a training's: tensors are not computed, which would need kernels. Shapes are of 12 layers,
each step's batch having another length, as in a loader that packs sentences. On the stand-in driver.
"""

import random
import sys

import torch

LAYERS, WIDTH, HEADS, BATCH = 12, 512, 8, 8


def empty(*shape):
    return torch.empty(shape, dtype=torch.bfloat16, device="cuda")


def forward(length):
    """What a layer keeps for its backward pass."""
    kept = [empty(BATCH, length, WIDTH), empty(BATCH, length, 3 * WIDTH)]
    scores = empty(BATCH, HEADS, length, length)
    kept += [empty(BATCH, HEADS, length, length), empty(BATCH, length, WIDTH)]
    del scores  # only its softmax is needed
    kept += [empty(BATCH, length, 4 * WIDTH), empty(BATCH, length, 4 * WIDTH), empty(BATCH, length, WIDTH)]
    return kept


def backward(kept):
    """Frees what a layer kept, from its end, with a gradient of each for a while."""
    gradient = None
    while kept:
        gradient = torch.empty_like(kept[-1])
        kept.pop()
    return gradient


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    lengths = random.Random(1)
    weights = [empty(12 * WIDTH, WIDTH) for _ in range(LAYERS)]
    loader = torch.cuda.Stream()
    for _ in range(steps):
        length = lengths.randrange(64, 257, 8)
        with torch.cuda.stream(loader):
            batch = empty(BATCH, length, WIDTH)
        torch.cuda.current_stream().wait_stream(loader)
        kept = [forward(length) for _ in weights]
        batch.record_stream(torch.cuda.current_stream())
        del batch
        logits = empty(BATCH, length, 8192)
        gradient = torch.empty_like(logits)
        del logits
        gradients = []
        while kept:
            gradient = backward(kept.pop())
            gradients.append(torch.empty_like(weights[0]))
        del gradient
        total = torch.zeros(1, dtype=torch.uint8, device="cuda").cpu()  # as a loss is read
        del gradients, total
    torch.cuda.synchronize()
    print(f"{steps} steps, at most {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB of tensors")


main()
