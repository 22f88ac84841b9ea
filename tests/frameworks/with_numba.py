"""Numba's memory on the stand-in: with_numba.py FEATURE.

Numba calls the driver by cuda-python's bindings and by ctypes. Kernels need a compiler's libraries and a
GPU, and are skipped.
"""

import gc
import multiprocessing
import os

import numpy as np
from numba import cuda

from feature import feature, main, unavailable

MIB = 1 << 20


def give_back():
    """Numba frees arrays in groups, and some only when Python collects cycles."""
    gc.collect()
    cuda.current_context().memory_manager.deallocations.clear()


@feature
def creation():
    arrays = [cuda.device_array(size, np.uint8) for size in (1, 1000, MIB, 3 * MIB + 1)]
    assert len({array.__cuda_array_interface__["data"][0] for array in arrays}) == len(arrays)
    assert cuda.device_array((16, 16), np.float32).nbytes == 1024


@feature
def copies():
    numbers = np.arange(100_000, dtype=np.float64)
    there = cuda.to_device(numbers)
    again = cuda.device_array_like(there)
    again.copy_to_device(there)
    assert (again.copy_to_host() == numbers).all()


@feature
def frees():
    context = cuda.current_context()
    array = None
    for round_ in range(200):
        array = cuda.to_device(np.ones(MIB // 8))
        if round_ == 0:
            free = context.get_memory_info().free
    give_back()
    now = context.get_memory_info().free
    assert now == free, (now, free)


@feature
def streams():
    stream = cuda.stream()
    numbers = cuda.pinned_array(1000, np.float32)
    numbers[:] = 3
    for _ in range(100):
        there = cuda.to_device(numbers, stream=stream)
        back = there.copy_to_host(stream=stream)
        del there
    event = cuda.event()
    event.record(stream)
    event.synchronize()
    stream.synchronize()
    assert (back == 3).all()


@feature
def default_stream_of_a_thread():
    stream = cuda.per_thread_default_stream()
    there = cuda.to_device(np.full(1000, 5.0), stream=stream)
    back = there.copy_to_host(stream=stream)
    stream.synchronize()
    assert (back == 5).all()


@feature
def out_of_memory_and_recovery():
    free = cuda.current_context().get_memory_info().free
    kept = []
    try:
        while True:
            kept.append(cuda.device_array(free // 4, np.uint8))
    except Exception as error:  # its class depends on which binding Numba uses
        assert "OUT_OF_MEMORY" in str(error), error
    assert 3 <= len(kept) <= 4, len(kept)
    kept.clear()
    give_back()
    cuda.device_array(free // 2, np.uint8)


@feature
def memory_info():
    info = cuda.current_context().get_memory_info()
    assert 0 < info.free <= info.total
    array = cuda.device_array(32 * MIB, np.uint8)
    assert info.free - cuda.current_context().get_memory_info().free >= 32 * MIB
    del array


@feature
def managed_memory():
    array = cuda.managed_array(1000, np.float32)
    array[:] = 2
    assert array.sum() == 2000


def read_shared(handle, answer):
    try:
        with handle as array:
            answer.put(float(array.copy_to_host().sum()))
    except Exception as error:
        answer.put(repr(error))


@feature
def shared_with_a_second_process():
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    array = cuda.to_device(np.full(1000, 7.0))
    child = context.Process(target=read_shared, args=(array.get_ipc_handle(), answer))
    child.start()
    got = answer.get(timeout=60)
    child.join()
    assert got == 7000, got


@feature
def workers_after_fork():
    cuda.device_array(1000)
    child = os.fork()
    if child == 0:
        os._exit(3 if np.ones(10).sum() == 10 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    cuda.device_array(1000)


@feature
def kernels():
    unavailable("the stand-in runs no kernel that a compiler made")


if __name__ == "__main__":
    main()
