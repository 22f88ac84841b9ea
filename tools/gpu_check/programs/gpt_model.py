"""A small transformer of the kind that predicts the next token."""


def make_model(torch, tokens, width, heads, layers, length):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before = nn.LayerNorm(width)
            self.parts = nn.Linear(width, 3 * width)
            self.joined = nn.Linear(width, width)
            self.between = nn.LayerNorm(width)
            self.wide = nn.Linear(width, 4 * width)
            self.narrow = nn.Linear(4 * width, width)
            self.register_buffer("future", torch.ones(length, length).triu(1).bool())

        def attend(self, x):
            # Not fused: the backward pass of fused kernels adds in no fixed order.
            batch, places, _ = x.shape
            query, key, value = (
                part.view(batch, places, heads, width // heads).transpose(1, 2)
                for part in self.parts(x).split(width, 2)
            )
            weights = query @ key.transpose(2, 3) * (width // heads) ** -0.5
            weights = weights.masked_fill(self.future[:places, :places], float("-inf"))
            mixed = weights.softmax(-1) @ value
            return self.joined(mixed.transpose(1, 2).reshape(batch, places, width))

        def forward(self, x):
            x = x + self.attend(self.before(x))
            return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token = nn.Embedding(tokens, width)
            self.place = nn.Parameter(torch.randn(length, width) * 0.02)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.last = nn.LayerNorm(width)
            self.head = nn.Linear(width, tokens, bias=False)

        def forward(self, text, following):
            x = self.token(text) + self.place[: text.shape[1]]
            logits = self.head(self.last(self.blocks(x)))
            return nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())

    return Model()
