"""Numba with weir.numba for its memory manager: with_numba_manager.py FEATURE.

The features of with_numba.py, and what the manager promises. Without Weir, weir.numba is Numba's own manager.
"""

import gc
import os
import pathlib
import sys
import threading

os.environ["NUMBA_CUDA_MEMORY_MANAGER"] = "weir.numba"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))

import weir
import with_numba  # noqa: F401  # adds its features
from numba import cuda

from feature import feature, main, unavailable

MIB = 1 << 20


def manager():
    if not weir.active():
        unavailable("without Weir this is Numba's own manager")
    from weir.numba import MemoryManager

    cuda.device_array(1)
    found = cuda.current_context().memory_manager
    assert type(found) is MemoryManager, type(found)
    return found


def allocated():
    return weir.memory_info().allocated


@feature
def freed_at_once():
    manager()
    before = allocated()
    arrays = [cuda.device_array(MIB) for _ in range(3)]
    assert allocated() - before >= 3 * MIB
    part = arrays.pop()[: MIB // 2]
    arrays.clear()
    assert allocated() - before >= MIB, "a view keeps its array"
    del part
    gc.collect()
    assert allocated() == before, allocated() - before


@feature
def budget_is_the_memory():
    manager()
    memory = weir.memory_info()
    info = cuda.current_context().get_memory_info()
    assert info.total == memory.budget, (info, memory)
    assert info.free <= memory.budget - memory.reserved + memory.cached, (info, memory)


@feature
def freed_on_a_thread_without_a_context():
    manager()
    before = allocated()
    arrays = [cuda.device_array(MIB)]
    thread = threading.Thread(target=arrays.clear)
    thread.start()
    thread.join()
    cuda.device_array(1)
    gc.collect()
    assert allocated() == before, allocated() - before


@feature
def deferred_cleanup():
    manager()
    with cuda.defer_cleanup():
        array = cuda.to_device([1.0, 2.0])
        del array
    assert cuda.to_device([3.0]).copy_to_host()[0] == 3


if __name__ == "__main__":
    main()
