"""Trains a small dense network on random numbers with JAX."""

import os

import harness


def run(args):
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_deterministic_ops=true".strip()
    if args.device == "cpu":
        os.environ["JAX_PLATFORMS"] = "cpu"
    jax = harness.need("jax", "JAX")
    numpy = harness.need("numpy", "NumPy")
    try:
        device = jax.devices(args.device)[0]
    except RuntimeError as error:
        why = str(error).splitlines()[0]
        raise harness.Missing(f"JAX is there, and finds no {args.device}: {why}") from error
    batch, widths = (4, [8, 8, 1]) if args.small else (4096, [1024, 4096, 4096, 1])
    draw = numpy.random.default_rng(2)
    weights = [
        jax.device_put(draw.standard_normal(pair, dtype=numpy.float32) / pair[0] ** 0.5, device)
        for pair in zip(widths, widths[1:])
    ]

    def loss_of(weights, x):
        y = x
        for matrix in weights[:-1]:
            y = jax.numpy.tanh(y @ matrix)
        return jax.numpy.mean((y @ weights[-1] - x.sum(1, keepdims=True)) ** 2)

    @jax.jit
    def train(weights, x):
        loss, slopes = jax.value_and_grad(loss_of)(weights, x)
        return [w - 1e-3 * slope for w, slope in zip(weights, slopes)], loss

    ring = [draw.standard_normal((batch, widths[0]), dtype=numpy.float32) for _ in range(4)]

    def step(number):
        nonlocal weights
        weights, loss = train(weights, jax.device_put(ring[number % len(ring)], device))
        return loss

    times = harness.measure(args, step, lambda: jax.block_until_ready(weights))
    figures = {"framework": f"JAX {jax.__version__}", **times}
    if args.device == "cuda":
        figures["allocator"] = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default")
        # JAX's own allocators keep statistics; CUDA's may not.
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
        if peak is not None:
            figures["peak_in_use_bytes"] = peak
    return figures


if __name__ == "__main__":
    harness.main("jax_train", run, harness.flags(__doc__, steps=60))
