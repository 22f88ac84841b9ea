"""Trains low-rank adapters of a frozen GPT-2 of the smallest size, every block's activations computed
again in the backward pass, on texts of varying lengths."""

import torch
from torch import nn

import gpt
import recorder

STEPS = 12


class Adapted(nn.Module):
    """A frozen linear layer plus a product of two thin matrices."""

    def __init__(self, frozen, rank=16, scale=2.0):
        super().__init__()
        self.frozen, self.scale = frozen, scale
        self.down = nn.Linear(frozen.in_features, rank, bias=False)
        self.up = nn.Linear(rank, frozen.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.frozen(x) + self.up(self.down(x)) * self.scale


def adapt(model):
    """Freezes the model in bfloat16, and adds float32 adapters to its linear layers."""
    model.to(torch.bfloat16).requires_grad_(False)
    for block in model.blocks:
        block.attention.qkv = Adapted(block.attention.qkv)
        block.attention.out = Adapted(block.attention.out)
        block.mlp[0], block.mlp[2] = Adapted(block.mlp[0]), Adapted(block.mlp[2])
    return model


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)
    model = adapt(gpt.Gpt(**gpt.SMALL, recompute=True)).to(device)
    batches = (gpt.draw_padded(8, gpt.SMALL["length"], draw) for _ in range(steps))
    return gpt.train(model, batches, device, step)


if __name__ == "__main__":
    recorder.main("gpt_recompute_lora", __doc__, run, steps=STEPS)
