"""Trains a small transformer on random tokens with PyTorch, each batch in a range that profilers show;
with --profile under PyTorch's own profiler, and says how much of the device's work that saw."""

import contextlib

import gpt_model
import harness


def profiler(torch, args):
    """Returns PyTorch's profiler, or an empty context."""
    if not args.profile:
        return contextlib.nullcontext()
    kinds = [torch.profiler.ProfilerActivity.CPU]
    if args.device == "cuda":
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
    return torch.profiler.profile(activities=kinds)


def on_device(torch, profile):
    """Returns how many device kernels, copies and sets the profiler recorded."""
    cuda = torch.autograd.DeviceType.CUDA
    return sum(1 for event in profile.events() if event.device_type == cuda)


def run(args):
    torch = harness.torch_ready(args.device)
    tokens, width, heads, layers, length, batch = (
        (64, 32, 4, 2, 16, 2) if args.small else (8192, 512, 8, 6, 512, 16)
    )
    model = gpt_model.make_model(torch, tokens, width, heads, layers, length).to(args.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    draw = torch.Generator().manual_seed(2)
    shown = torch.cuda.nvtx.range if args.device == "cuda" else contextlib.nullcontext

    def step(number):
        with shown("batch"):
            text = torch.randint(tokens, (batch, length + 1), generator=draw).to(args.device)
            return harness.descend(optimizer, model(text[:, :-1], text[:, 1:]))

    with profiler(torch, args) as profile:
        figures = harness.torch_figures(torch, args, step)
    if args.profile:
        figures["profiled_kernels"] = on_device(torch, profile)
    return figures


if __name__ == "__main__":
    parser = harness.flags(__doc__, steps=20)
    parser.add_argument("--profile", action="store_true", help="under torch.profiler")
    harness.main("torch_timeline", run, parser)
