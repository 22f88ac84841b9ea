"""Trains a GPT of six layers on texts that grow longer from step to step, as a curriculum has them."""

import torch

import gpt
import recorder

STEPS = 24
SIZES = {"width": 256, "heads": 8, "layers": 6, "length": 512, "vocabulary": gpt.BYTES}


def run(device, steps, step, **options):
    draw = torch.Generator().manual_seed(2)
    model = gpt.Gpt(**SIZES, **options).to(device)

    def text(number):
        both = gpt.draw_text(4, 64 + (SIZES["length"] - 64) * number // steps + 1, draw, gpt.BYTES)
        return both[:, :-1], both[:, 1:]

    return gpt.train(model, map(text, range(steps)), device, step)


if __name__ == "__main__":
    recorder.main("small_gpt_growing", __doc__, run, steps=STEPS)
