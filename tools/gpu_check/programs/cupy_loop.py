"""Products and elementwise work of changing sizes with CuPy, from its own pool of cudaMalloc or, with
--async-pool, from CUDA's pool in stream order. On a cpu NumPy takes its place."""

import harness


def run(args):
    on_gpu = args.device == "cuda"
    xp = harness.need("cupy", "CuPy") if on_gpu else harness.need("numpy", "NumPy")
    if on_gpu:
        try:
            found = xp.cuda.runtime.getDeviceCount()
        except xp.cuda.runtime.CUDARuntimeError as error:
            raise harness.Missing(f"CuPy is there, and finds no GPU: {error}") from error
        if found == 0:
            raise harness.Missing("CuPy is there, and finds no GPU")
        if args.async_pool:
            xp.cuda.set_allocator(xp.cuda.MemoryAsyncPool().malloc)
    numpy = harness.need("numpy", "NumPy")
    rows, width = (16, 8) if args.small else (8192, 2048)
    draw = numpy.random.default_rng(2)
    weights = xp.asarray(draw.standard_normal((width, width), dtype=numpy.float32) / width**0.5)
    ring = [draw.standard_normal((rows, width), dtype=numpy.float32) for _ in range(3)]

    def step(number):
        nonlocal weights
        some = rows - (number * 37) % (rows // 2)
        x = xp.asarray(ring[number % len(ring)][:some])
        y = xp.tanh(x @ weights)
        error = y - 0.5 * x
        weights = weights - (1e-2 / some) * (x.T @ (error * (1 - y * y)))
        # Of one element: a mean over all may add in another order in each run.
        return error[0, 0] * error[0, 0]

    times = harness.measure(args, step, xp.cuda.Device().synchronize if on_gpu else lambda: None)
    figures = {"framework": f"{'CuPy' if on_gpu else 'NumPy'} {xp.__version__}", **times}
    if on_gpu:
        figures["allocator"] = "MemoryAsyncPool" if args.async_pool else "MemoryPool"
        if not args.async_pool:
            figures["peak_reserved_bytes"] = xp.get_default_memory_pool().total_bytes()
    return figures


if __name__ == "__main__":
    parser = harness.flags(__doc__, steps=60)
    parser.add_argument("--async-pool", action="store_true")
    harness.main("cupy_loop", run, parser)
