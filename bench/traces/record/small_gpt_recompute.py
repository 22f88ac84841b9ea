"""Trains a GPT of eight layers, activations computed again in the backward pass, on texts of varying lengths."""

import torch

import gpt
import recorder

STEPS = 8
SIZES = {"width": 256, "heads": 8, "layers": 8, "length": 1024, "vocabulary": gpt.BYTES}


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**SIZES, recompute=True).to(device)
    batches = (gpt.draw_padded(8, SIZES["length"], draw, gpt.BYTES) for _ in range(steps))
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("small_gpt_recompute", __doc__, run, steps=STEPS)
