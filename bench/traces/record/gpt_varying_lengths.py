"""Trains GPT-2's smallest model on texts of varying lengths, padded to the longest of their batch."""

import torch

import gpt
import recorder

STEPS = 20


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**gpt.SMALL).to(device)
    batches = (gpt.draw_padded(4, gpt.SMALL["length"], draw) for _ in range(steps))
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("gpt_varying_lengths", __doc__, run, steps=STEPS)
