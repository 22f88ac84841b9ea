"""Trains a GPT of six layers on bytes of texts of varying lengths."""

import torch

import gpt
import recorder

STEPS = 10
SIZES = {"width": 384, "heads": 6, "layers": 6, "length": 512, "vocabulary": gpt.BYTES}


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**SIZES).to(device)
    batches = (gpt.draw_padded(4, SIZES["length"], draw, gpt.BYTES) for _ in range(steps))
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("small_gpt_varying_lengths", __doc__, run, steps=STEPS)
