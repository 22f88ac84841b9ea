"""Captures a training step into a CUDA graph with PyTorch and replays it."""

import gpt_model
import harness


def run(args):
    torch = harness.torch_ready(args.device)
    tokens, width, heads, layers, length, batch = (
        (64, 32, 4, 2, 16, 2) if args.small else (4096, 256, 4, 4, 256, 16)
    )
    model = gpt_model.make_model(torch, tokens, width, heads, layers, length).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draw = torch.Generator().manual_seed(2)
    text = torch.zeros(batch, length + 1, dtype=torch.long, device=args.device)

    def train():
        return harness.descend(optimizer, model(text[:, :-1], text[:, 1:]))

    if args.device == "cuda":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(harness.WARM_UP):  # lazy initialization must not happen in a capture
                train()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            captured = train()

    def step(number):
        text.copy_(torch.randint(tokens, tuple(text.shape), generator=draw))
        if args.device != "cuda":
            return train()
        graph.replay()
        # The next replay overwrites it. Memory allocated between replays must never be the graph's own.
        return captured.clone()

    return harness.torch_figures(torch, args, step)


if __name__ == "__main__":
    harness.main("torch_graphs", run, harness.flags(__doc__, steps=100))
