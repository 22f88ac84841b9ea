#!/usr/bin/env python3
"""Writes what PyTorch's optimizers make of given gradients, for optimizer_host_test.cpp.

    make_optimizer_vectors.py >optimizer.txt        needs torch; the CPU is enough

Weights and gradients are not in the file: both sides draw them by the same rule (see `Numbers`),
exactly. A case is a line of settings, then the weights after some steps, and the moments after the
last. Those are hexadecimal, so that each float is there to the bit.
"""

import sys

import torch

STEPS = 100
SHOWN = (1, 10, STEPS)

# optimizer, elements, seed, lr, beta1, beta2, eps; for SGD beta1 is the momentum
CASES = [
    ("adam", 64, 1, 1e-3, 0.9, 0.999, 1e-8),
    ("adam", 33, 2, 1e-1, 0.9, 0.999, 1e-8),
    ("adam", 31, 3, 1e-5, 0.9, 0.98, 1e-9),
    ("adam", 7, 4, 1e-2, 0.5, 0.9, 1e-6),
    ("adam", 16, 5, 1e-2, 0.0, 0.99, 1e-8),
    ("adam", 16, 6, 3e-3, 0.99, 0.9999, 1e-3),
    ("adam", 1, 7, 1.0, 0.9, 0.999, 1e-8),
    ("adamax", 64, 8, 2e-3, 0.9, 0.999, 1e-8),
    ("adamax", 33, 9, 1e-1, 0.9, 0.999, 1e-8),
    ("adamax", 31, 10, 1e-5, 0.9, 0.98, 1e-9),
    ("adamax", 7, 11, 1e-2, 0.5, 0.9, 1e-6),
    ("adamax", 16, 12, 1e-2, 0.0, 0.99, 1e-8),
    ("adamax", 16, 13, 3e-3, 0.99, 0.9999, 1e-3),
    ("adamax", 1, 14, 1.0, 0.9, 0.999, 1e-8),
    ("sgd", 33, 15, 1e-2, 0.0, 0.0, 1.0),
    ("momentum", 33, 16, 1e-2, 0.9, 0.0, 1.0),
]


class Numbers:
    """A linear congruential generator: x = 1664525 x + 1013904223 modulo 2^32 (Numerical Recipes).
    The upper 24 bits make a number in [-1, 1) that a float holds exactly."""

    def __init__(self, seed):
        self.x = seed

    def next(self):
        self.x = (1664525 * self.x + 1013904223) % 2**32
        return (self.x >> 8) / 2**23 - 1

    def weights(self, count):
        return [self.next() for _ in range(count)]

    def gradients(self, count):
        """Of many sizes, down to 2^-15; every fifth draw is zero, as for a row that is not touched."""
        drawn = [self.next() for _ in range(count)]
        return [0.0 if self.next() < -0.6 else value * 2.0 ** -(i % 16) for i, value in enumerate(drawn)]


def optimizer_of(name, w, lr, beta1, beta2, eps):
    if name == "adam":
        return torch.optim.Adam([w], lr=lr, betas=(beta1, beta2), eps=eps)
    if name == "adamax":
        return torch.optim.Adamax([w], lr=lr, betas=(beta1, beta2), eps=eps)
    return torch.optim.SGD([w], lr=lr, momentum=beta1)


MOMENTS = {
    "adam": ("exp_avg", "exp_avg_sq"),
    "adamax": ("exp_avg", "exp_inf"),
    "momentum": ("momentum_buffer",),
    "sgd": (),
}


def line(word, tensor):
    return " ".join([word, *(float(value).hex() for value in tensor)])


def lines_of(name, count, seed, *settings):
    yield f"case {name} {count} {seed} {' '.join(repr(value) for value in settings)}"
    numbers = Numbers(seed)
    w = torch.tensor(numbers.weights(count), dtype=torch.float32, requires_grad=True)
    optimizer = optimizer_of(name, w, *settings)
    for step in range(1, STEPS + 1):
        w.grad = torch.tensor(numbers.gradients(count), dtype=torch.float32)
        optimizer.step()
        if step in SHOWN:
            yield line(f"w {step}", w.detach())
    for moment in MOMENTS[name]:
        yield line("moment", optimizer.state[w][moment])


def main():
    if len(sys.argv) != 1:
        sys.exit("usage: make_optimizer_vectors.py >optimizer.txt")
    torch.set_num_threads(1)
    print(f"# PyTorch {torch.__version__}, by make_optimizer_vectors.py")
    for case in CASES:
        print("\n".join(lines_of(*case)))


if __name__ == "__main__":
    main()
