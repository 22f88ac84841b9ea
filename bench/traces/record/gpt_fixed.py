"""Trains GPT-2's smallest model on texts that are all of one length."""

import torch

import gpt
import recorder

STEPS = 10


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)

    def batches():
        for _ in range(steps):
            text = gpt.draw_text(4, 513, draw)
            yield text[:, :-1], text[:, 1:]

    model = gpt.Gpt(**gpt.SMALL).to(device)
    return gpt.train(model, batches(), device, step)


if __name__ == "__main__":
    recorder.main("gpt_fixed", __doc__, run, steps=STEPS)
