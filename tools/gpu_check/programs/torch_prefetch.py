"""Copies batches on a stream of their own, far ahead of slow work on another, with PyTorch.

A batch arrives as bytes and is widened for the work. Both are kept until the batch's event is seen
to have passed, which is asked for and never waited for. Nothing in the loop stops the host: the faster
it is than the device, the more batches are in memory.
"""

import collections
import contextlib

import harness


class NoEvent:
    """A stream of a cpu, where all work completes at once."""

    def record(self, stream):
        pass

    def query(self):
        return True


class Streams:
    def __init__(self, torch, device):
        self._torch = torch if device == "cuda" else None
        self.work = torch.cuda.current_stream() if self._torch else None
        self.copies = torch.cuda.Stream() if self._torch else None

    def on_copies(self):
        return self._torch.cuda.stream(self.copies) if self._torch else contextlib.nullcontext()

    def hand_over(self, tensor):
        """Lets the work read what the copies wrote, even if `tensor` is released before."""
        if self._torch:
            self.work.wait_stream(self.copies)
            tensor.record_stream(self.work)

    def event(self):
        return self._torch.cuda.Event() if self._torch else NoEvent()

    def batch_range(self):
        """A range that a profiler shows."""
        return self._torch.cuda.nvtx.range("batch") if self._torch else contextlib.nullcontext()


def run(args):
    torch = harness.torch_ready(args.device)
    rows, columns, products = (8, 16, 2) if args.small else (16384, 4096, 8)
    streams = Streams(torch, args.device)
    draw = torch.Generator().manual_seed(2)
    weights = (torch.randn(columns, columns, generator=draw) / columns**0.5).to(args.device)
    ring = [
        torch.randint(256, (rows, columns), generator=draw, dtype=torch.uint8) for _ in range(3)
    ]
    if args.device == "cuda":
        ring = [host.pin_memory() for host in ring]
    kept = collections.deque()
    most_kept = 0

    def step(number):
        nonlocal most_kept
        with streams.batch_range():
            with streams.on_copies():
                raw = ring[number % len(ring)].to(args.device, non_blocking=True)
            streams.hand_over(raw)
            batch = raw.float().div_(255)
            x = batch
            for _ in range(products):
                x = x @ weights
            loss = x.mean()
            done = streams.event()
            done.record(streams.work)
        kept.append((done, raw, batch))
        most_kept = max(most_kept, len(kept))
        while kept and kept[0][0].query():
            kept.popleft()
        return loss

    return {**harness.torch_figures(torch, args, step), "most_batches_kept": most_kept}


if __name__ == "__main__":
    harness.main("torch_prefetch", run, harness.flags(__doc__, steps=60))
