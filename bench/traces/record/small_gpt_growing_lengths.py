"""Trains a GPT of four layers on texts that are longer from step to step."""

import torch

import gpt
import recorder

STEPS = 12
SIZES = {"width": 256, "heads": 8, "layers": 4, "length": 512, "vocabulary": gpt.BYTES}


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**SIZES).to(device)
    batches = gpt.draw_growing(4, 64, SIZES["length"], steps, draw, gpt.BYTES)
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("small_gpt_growing_lengths", __doc__, run, steps=STEPS)
