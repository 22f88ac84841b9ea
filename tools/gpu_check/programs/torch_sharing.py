"""Trains a model whose batches another process makes on the GPU and hands over as shared tensors, with
torch.multiprocessing. That process starts anew (spawn) and keeps each tensor until it was used."""

import queue

import harness

PATIENCE = 60  # seconds that one process waits for the other


def make_batches(device, steps, batch, width, filled, used):
    """The other process. Ends when every batch was used."""
    import torch

    draw = torch.Generator().manual_seed(2)
    for _ in range(steps):
        rows = torch.randn(batch, width, generator=draw).to(device)
        rows.mul_(0.5)
        if device == "cuda":
            torch.cuda.synchronize()
        filled.put(rows)
        used.get(timeout=PATIENCE)


def run(args):
    torch = harness.torch_ready(args.device)
    import torch.multiprocessing as processes

    width, batch = (16, 4) if args.small else (2048, 256)
    model = torch.nn.Linear(width, 1).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    spawn = processes.get_context("spawn")
    filled, used = spawn.Queue(), spawn.Queue()
    sizes = (args.device, args.steps, batch, width)
    other = spawn.Process(target=make_batches, args=(*sizes, filled, used), daemon=True)
    other.start()

    def step(number):
        try:
            rows = filled.get(timeout=PATIENCE)
        except queue.Empty:
            raise RuntimeError("the other process made no batch") from None
        loss = harness.descend(optimizer, (model(rows) - rows.sum(1, keepdim=True)).square().mean())
        if args.device == "cuda":
            torch.cuda.synchronize()
        del rows
        used.put(number)
        return loss

    figures = harness.torch_figures(torch, args, step)
    other.join(PATIENCE)
    if other.exitcode != 0:
        raise RuntimeError(f"the other process ended with {other.exitcode}")
    return figures


if __name__ == "__main__":
    harness.main("torch_sharing", run, harness.flags(__doc__, steps=40))
