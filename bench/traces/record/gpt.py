"""A GPT like GPT-2 (layer norms before attention and MLP, learned positions, head tied to the embedding)
and its data, shared by the workloads with transformers."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

# GPT-2's vocabulary, and the sizes of its smallest model.
VOCABULARY = 50257
SMALL = {"width": 768, "heads": 12, "layers": 12, "length": 1024}
# One token per byte of text, as in models for learning on one machine.
BYTES = 256


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        split = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(split).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


def mlp(width):
    return nn.Sequential(
        nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
    )


class Block(nn.Module):
    def __init__(self, width, heads, make_mlp):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = make_mlp(width)

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class Gpt(nn.Module):
    def __init__(self, width, heads, layers, length, make_mlp=mlp, recompute=False, vocabulary=VOCABULARY):
        super().__init__()
        self.recompute = recompute
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, make_mlp) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self._start)
        self.head.weight = self.tokens.weight

    @staticmethod
    def _start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, text, targets):
        x = self.tokens(text) + self.places(torch.arange(text.shape[1], device=text.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=-100)


def draw_text(batch, length, draw, vocabulary=VOCABULARY):
    """Draws tokens distributed like words: the frequency of rank r is about 1 / r."""
    ranks = torch.exp(torch.rand(batch, length, generator=draw) * torch.tensor(vocabulary).log())
    return (ranks.long() - 1).clamp(0, vocabulary - 1)


def draw_padded(batch, longest, draw, vocabulary=VOCABULARY):
    """Draws texts of skewed lengths, mostly short, padded to the longest of the batch. Returns them and
    the targets, with padding marked to be left out of the loss."""
    lengths = torch.exp(torch.randn(batch, generator=draw) * 0.7 + 5.0).long().clamp(32, longest)
    text = draw_text(batch, int(lengths.max()) + 1, draw, vocabulary)
    targets = text[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) >= lengths[:, None]] = -100
    return text[:, :-1], targets


def train(model, batches, device, step, rate=3e-4):
    """Trains in the usual way: fused AdamW over all trainable parameters, bfloat16 by autocast, clipped
    gradients."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=0.1, fused=True)
    for text, targets in batches:
        step(f"{text.shape[0]}x{text.shape[1]} tokens")
        text, targets = text.to(device), targets.to(device)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(text, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer
