"""Trains a small transformer through torch.compile, which replays CUDA graphs of it."""

import gpt_model
import harness

# torch.compile's messages if a compiler or Triton is missing.
TOOLS = ("triton", "compiler", "gcc", "cl.exe", "Python.h", "nvcc", "ptxas")


def run(args):
    torch = harness.torch_ready(args.device)
    tokens, width, heads, layers, length, batch = (
        (64, 32, 4, 1, 16, 2) if args.small else (4096, 256, 4, 2, 256, 16)
    )
    model = gpt_model.make_model(torch, tokens, width, heads, layers, length).to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, mode=args.mode)
    draw = torch.Generator().manual_seed(2)

    def step(number):
        torch.compiler.cudagraph_mark_step_begin()
        text = torch.randint(tokens, (batch, length + 1), generator=draw).to(args.device)
        try:
            loss = harness.descend(optimizer, compiled(text[:, :-1], text[:, 1:]))
        except Exception as error:
            if number > 0 or not tools_are_missing(error):
                raise
            raise harness.Missing(f"torch.compile does not work here: {first_line(error)}") from error
        return loss.clone()  # the next replay overwrites it

    figures = harness.torch_figures(torch, args, step)
    from torch._dynamo.utils import counters

    figures["cudagraph_skips"] = counters["inductor"]["cudagraph_skips"]
    return figures


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]


def tools_are_missing(error):
    """Returns whether the compiler failed, not the program."""
    from_compiler = type(error).__module__.startswith(("torch._dynamo", "torch._inductor"))
    return from_compiler and any(tool in str(error) for tool in TOOLS)


if __name__ == "__main__":
    words = harness.flags(__doc__, steps=20)
    words.add_argument("--mode", default="reduce-overhead")
    harness.main("torch_compile", run, words)
