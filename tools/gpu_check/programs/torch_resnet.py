"""Trains a small residual network on random pictures with PyTorch."""

import harness


def make_model(torch, width):
    nn = torch.nn

    class Block(nn.Module):
        """Two convolutions with a shortcut."""

        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.first_norm = nn.BatchNorm2d(outputs)
            self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.second_norm = nn.BatchNorm2d(outputs)
            self.around = None
            if stride != 1 or inputs != outputs:
                self.around = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

        def forward(self, x):
            y = torch.relu(self.first_norm(self.first(x)))
            y = self.second_norm(self.second(y))
            return torch.relu(y + (x if self.around is None else self.around(x)))

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width, width, 2 * width, 4 * width, 8 * width]
            self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
            self.blocks = nn.Sequential(
                *[Block(widths[i], widths[i + 1], 1 if i == 0 else 2) for i in range(4)]
            )
            self.head = nn.Linear(8 * width, 10)

        def forward(self, x):
            # A mean, since adaptive pooling has no deterministic backward pass on a GPU.
            return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    return Network()


def run(args):
    torch = harness.torch_ready(args.device)
    width, batch, side = (8, 4, 16) if args.small else (64, 128, 64)
    model = make_model(torch, width).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    draw = torch.Generator().manual_seed(2)
    ring = [
        (torch.randn(batch, 3, side, side, generator=draw), torch.randint(10, (batch,), generator=draw))
        for _ in range(4)
    ]

    def step(number):
        pictures, labels = (part.to(args.device) for part in ring[number % len(ring)])
        return harness.descend(optimizer, torch.nn.functional.cross_entropy(model(pictures), labels))

    return harness.torch_figures(torch, args, step)


if __name__ == "__main__":
    harness.main("torch_resnet", run, harness.flags(__doc__, steps=40))
