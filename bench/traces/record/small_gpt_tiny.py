"""Trains a GPT of four thin layers on texts of varying lengths."""

import torch

import gpt
import recorder

STEPS = 24
SIZES = {"width": 128, "heads": 4, "layers": 4, "length": 512, "vocabulary": gpt.BYTES}


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**SIZES).to(device)
    batches = (gpt.draw_padded(4, SIZES["length"], draw, gpt.BYTES) for _ in range(steps))
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("small_gpt_tiny", __doc__, run, steps=STEPS)
