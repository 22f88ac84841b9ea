"""Trains on batches that forked workers make, with PyTorch's DataLoader, after CUDA was first used:
what was preloaded into this process is in theirs too."""

import harness


def run(args):
    torch = harness.torch_ready(args.device)
    width, batch = (16, 4) if args.small else (2048, 256)
    model = torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 1)
    ).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return args.steps * batch

        def __getitem__(self, index):
            return torch.randn(width, generator=torch.Generator().manual_seed(index))

    loader = torch.utils.data.DataLoader(
        Rows(),
        batch_size=batch,
        num_workers=2,
        multiprocessing_context="fork",
        pin_memory=args.device == "cuda",
    )
    batches = iter(loader)

    def step(number):
        rows = next(batches).to(args.device, non_blocking=True)
        return harness.descend(optimizer, (model(rows) - rows.sum(1, keepdim=True)).square().mean())

    return harness.torch_figures(torch, args, step)


if __name__ == "__main__":
    harness.main("torch_workers", run, harness.flags(__doc__, steps=40))
