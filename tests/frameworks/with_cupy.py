"""CuPy on the stand-in: with_cupy.py FEATURE.

CuPy has the CUDA runtime linked in, which asks the driver for NVIDIA's private tables. The stand-in does not
have these. On a GPU the features work as named.
"""

import os

import cupy
import numpy as np

from feature import feature, main, unavailable

MIB = 1 << 20


def start():
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        unavailable(f"the runtime that is linked into CuPy asks for NVIDIA's own tables: {error}")


def put_and_read():
    arrays = [cupy.asarray(np.full(MIB // 4 * (1 + value % 5), value, np.float32)) for value in range(20)]
    assert all((array.get() == value).all() for value, array in enumerate(arrays))


@feature
def creation():
    start()
    put_and_read()


@feature
def streams():
    start()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(10):
            put_and_read()
        stream.synchronize()


@feature
def in_stream_order():
    start()
    cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    put_and_read()


@feature
def pool_given_back():
    start()
    put_and_read()
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    assert pool.total_bytes() == 0


@feature
def memory_limit():
    start()
    cupy.get_default_memory_pool().set_limit(size=4 * MIB)
    try:
        cupy.empty(8 * MIB, np.uint8)
    except cupy.cuda.memory.OutOfMemoryError:
        return
    raise AssertionError("more than the limit was given")


@feature
def out_of_memory_and_recovery():
    start()
    kept = []
    size = cupy.cuda.runtime.memGetInfo()[0] // 4
    try:
        for _ in range(1000):
            kept.append(cupy.empty(size, np.uint8))
    except cupy.cuda.memory.OutOfMemoryError:
        pass
    assert 3 <= len(kept) <= 4, len(kept)
    kept.clear()
    put_and_read()


@feature
def workers_after_fork():
    start()
    put_and_read()
    child = os.fork()
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    put_and_read()


if __name__ == "__main__":
    main()
