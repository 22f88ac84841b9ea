"""Trains a GPT whose MLPs are mixtures of experts: two of eight for each token, as its router says, so
that each expert has another number of tokens in each layer and step."""

import torch
from torch import nn
from torch.nn import functional as F

import gpt
import recorder

EXPERTS, TAKEN = 8, 2
STEPS = 12


class Mixture(nn.Module):
    """Like Mixtral's: each expert gathers its tokens, and adds its results at their places."""

    def __init__(self, width):
        super().__init__()
        self.router = nn.Linear(width, EXPERTS, bias=False)
        self.experts = nn.ModuleList(gpt.mlp(width) for _ in range(EXPERTS))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        shares = self.router(tokens).float().softmax(-1)
        weights, chosen = shares.topk(TAKEN, dim=-1)
        taken = F.one_hot(chosen, EXPERTS).float().mean(0).sum(0)
        self.balance = EXPERTS * (taken * shares.mean(0)).sum()
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        made = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            rows, place = torch.where(chosen == number)
            if rows.numel() > 0:
                part = expert(tokens[rows]) * weights[rows, place, None]
                made.index_add_(0, rows, part.to(made.dtype))
        return made.view_as(x)


class Model(gpt.Gpt):
    """Training also balances the use of the experts; otherwise only two would soon be used."""

    def forward(self, text, targets):
        loss = super().forward(text, targets)
        return loss + 0.02 * sum(block.mlp.balance for block in self.blocks)


def run(device, steps, step):
    draw = torch.Generator().manual_seed(2)

    def batches():
        for _ in range(steps):
            text = gpt.draw_text(4, 513, draw)
            yield text[:, :-1], text[:, 1:]

    model = Model(width=512, heads=8, layers=8, length=512, make_mlp=Mixture).to(device)
    # As in the first steps of a warm-up.
    return gpt.train(model, batches(), device, step, rate=1e-5)


if __name__ == "__main__":
    recorder.main("moe_uneven", __doc__, run, steps=STEPS)
