"""Generates text for requests that come and go, with caches of keys and values that grow by torch.cat.

Works like servers with padded batches. A request is prefilled alone, and its caches are padded and
joined to those of the batch. Each step makes every cache one token longer. When requests end, the other
caches are copied out of the batch.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

import gpt


class Sizes(NamedTuple):
    """The sizes of the model, and the number of requests it serves at a time."""

    width: int
    heads: int
    layers: int
    places: int
    batch: int
    vocabulary: int


MEDIUM = Sizes(1024, 16, 24, 2048, 16, gpt.VOCABULARY)  # GPT-2's medium model
SIX_LAYERS = Sizes(width=384, heads=6, layers=6, places=2048, batch=8, vocabulary=gpt.BYTES)
EIGHT_LAYERS = Sizes(width=512, heads=8, layers=8, places=2048, batch=12, vocabulary=gpt.BYTES)


class Layer(gpt.Block):
    """A block of the model with caches of keys and values, one tensor each."""

    def forward(self, x, past, mask):
        batch, length, width = x.shape
        heads = self.attention.heads
        split = (batch, length, heads, width // heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in
                   self.attention.qkv(self.norm_1(x)).split(width, dim=2))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        x = x + self.attention.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm_2(x)), (k, v)


class Model(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.places = nn.Embedding(sizes.places, sizes.width)
        self.layers = nn.ModuleList(Layer(sizes.width, sizes.heads, gpt.mlp) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)

    def forward(self, text, places, caches, mask=None):
        """Returns the next token of each row. Replaces the layers' `caches` one by one."""
        x = self.tokens(text) + self.places(places)
        for number, layer in enumerate(self.layers):
            x, caches[number] = layer(x, caches[number], mask)
        logits = F.linear(self.norm(x[:, -1:]), self.tokens.weight)
        return logits.float().softmax(-1).argmax(-1)


class Server:
    """A batch of requests: left-padded caches, and the current and the final number of tokens of each."""

    def __init__(self, model, device):
        self.model, self.device = model, device
        self.caches, self.text, self.lengths, self.ends = [None] * len(model.layers), None, [], []

    def join(self, prompt, end):
        alone = [None] * len(self.caches)
        text = self.model(prompt, torch.arange(prompt.shape[1], device=self.device), alone)
        longest = max([prompt.shape[1]] + self.lengths)
        for number, (mine, new) in enumerate(zip(self.caches, alone)):
            alone[number] = None
            self.caches[number] = tuple(
                torch.cat([F.pad(part, (0, 0, longest - part.shape[2], 0)) for part in pair])
                for pair in zip(*([mine, new] if mine else [new])))
        self.text = torch.cat((self.text, text)) if self.lengths else text
        self.lengths.append(prompt.shape[1])
        self.ends.append(end)

    def leave(self):
        """Removes the requests that have all of their tokens."""
        stay = [row for row, end in enumerate(self.ends) if self.lengths[row] < end]
        if len(stay) == len(self.ends):
            return
        self.lengths, self.ends = [self.lengths[r] for r in stay], [self.ends[r] for r in stay]
        rows, self.text = torch.tensor(stay, device=self.device), self.text[stay]
        for number, pair in enumerate(self.caches):
            self.caches[number] = tuple(
                part[rows, :, part.shape[2] - max(self.lengths):] for part in pair) if stay else None

    def decode(self):
        lengths = torch.tensor(self.lengths, device=self.device)[:, None]
        longest = max(self.lengths)
        mask = torch.arange(longest + 1, device=self.device) >= longest - lengths
        self.text = self.model(self.text, lengths, self.caches, mask[:, None, None])
        self.lengths = [length + 1 for length in self.lengths]


def drawn(middle, spread, least, most, draw):
    logarithm = torch.randn((), generator=draw) * spread + torch.tensor(middle).log()
    return int(torch.exp(logarithm).clamp(least, most))


@torch.inference_mode()
def run(device, steps, step, sizes=MEDIUM):
    draw = torch.Generator().manual_seed(2)
    server = Server(Model(sizes).to(device, torch.bfloat16), device)
    for _ in range(steps):
        server.leave()
        # Usually one more request per step, but never more than the batch takes: the rest would
        # queue.
        while len(server.ends) < sizes.batch and (not server.ends or torch.rand((), generator=draw) < 0.5):
            length = drawn(300.0, 0.8, 16, 1200, draw)
            prompt = gpt.draw_text(1, length, draw, sizes.vocabulary).to(device)
            server.join(prompt, length + drawn(60.0, 0.8, 4, 400, draw))
        step(f"{len(server.ends)} requests of up to {max(server.lengths)} tokens")
        server.decode()
    return server


def small(device, steps, step):
    return run(device, steps, step, SIX_LAYERS)


def wide(device, steps, step):
    return run(device, steps, step, EIGHT_LAYERS)
