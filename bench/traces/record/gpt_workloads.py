"""Workloads that train a GPT. Each draws its own data, always the same."""

import torch
from torch import nn
from torch.nn import functional as F

import gpt


def train_on(model, device, steps, step, text, rate=3e-4):
    """Trains on what `text(number, draw)` returns for each step."""
    draw = torch.Generator().manual_seed(2)
    return gpt.train(model, (text(number, draw) for number in range(steps)), device, step, rate)


def split(text):
    """Returns the text, and the next token of each place."""
    return text[:, :-1], text[:, 1:]


def fixed(device, steps, step):
    """GPT-2's smallest model, on texts that are all of one length."""
    model = gpt.Gpt(**gpt.SMALL).to(device)
    return train_on(model, device, steps, step, lambda number, draw: split(gpt.draw_text(4, 513, draw)))


def varying_lengths(device, steps, step):
    """The same, on texts of varying lengths, padded to the longest of their batch."""
    model = gpt.Gpt(**gpt.SMALL).to(device)
    return train_on(model, device, steps, step,
                    lambda number, draw: gpt.draw_padded(4, gpt.SMALL["length"], draw))


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


def recompute_lora(device, steps, step):
    """Adapters of the same model, frozen, every block's activations computed again in the backward pass."""
    model = adapt(gpt.Gpt(**gpt.SMALL, recompute=True)).to(device)
    return train_on(model, device, steps, step,
                    lambda number, draw: gpt.draw_padded(8, gpt.SMALL["length"], draw))


EXPERTS, TAKEN = 8, 2


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


class MixedGpt(gpt.Gpt):
    """Training also balances the use of the experts; otherwise only two would soon be used."""

    def forward(self, text, targets):
        loss = super().forward(text, targets)
        return loss + 0.02 * sum(block.mlp.balance for block in self.blocks)


def moe_uneven(device, steps, step):
    """A GPT whose MLPs are mixtures of experts: two of eight for each token, as its router says, so that each
    expert has another number of tokens in each layer and step."""
    model = MixedGpt(width=512, heads=8, layers=8, length=512, make_mlp=Mixture).to(device)
    # As in the first steps of a warm-up.
    return train_on(model, device, steps, step, lambda number, draw: split(gpt.draw_text(4, 513, draw)), rate=1e-5)


def growing(device, steps, step, **options):
    """A GPT of six layers, on texts that grow longer from step to step, as a curriculum has them."""
    longest = 512
    model = gpt.Gpt(width=256, heads=8, layers=6, length=longest, vocabulary=gpt.BYTES, **options).to(device)
    return train_on(model, device, steps, step, lambda number, draw: split(
        gpt.draw_text(4, 64 + (longest - 64) * number // steps + 1, draw, gpt.BYTES)))


def recompute(device, steps, step):
    """The same, every block's activations computed again in the backward pass."""
    return growing(device, steps, step, recompute=True)


def tiny(device, steps, step):
    """A GPT of four thin layers, on texts of varying lengths."""
    model = gpt.Gpt(width=128, heads=4, layers=4, length=512, vocabulary=gpt.BYTES).to(device)
    return train_on(model, device, steps, step, lambda number, draw: gpt.draw_padded(4, 512, draw, gpt.BYTES))
