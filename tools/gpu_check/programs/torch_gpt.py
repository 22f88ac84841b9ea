"""Trains a small transformer on random tokens with PyTorch, in texts of changing length."""

import gpt_model
import harness


def run(args):
    torch = harness.torch_ready(args.device)
    tokens, width, heads, layers, length, batch = (
        (64, 32, 4, 2, 16, 2) if args.small else (8192, 512, 8, 6, 512, 16)
    )
    if args.allocator:
        harness.use_allocator(torch, args.allocator)
    model = gpt_model.make_model(torch, tokens, width, heads, layers, length).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    draw = torch.Generator().manual_seed(2)

    def step(number):
        # Changing sizes fragment a cache.
        places = length - (number * 37) % (length // 2)
        text = torch.randint(tokens, (batch, places + 1), generator=draw).to(args.device)
        return harness.descend(optimizer, model(text[:, :-1], text[:, 1:]))

    return harness.torch_figures(torch, args, step)


if __name__ == "__main__":
    parser = harness.flags(__doc__, steps=40)
    parser.add_argument("--allocator", help="a library to allocate with: PyTorch's pluggable way")
    harness.main("torch_gpt", run, parser)
