"""Numba's external memory manager: NUMBA_CUDA_MEMORY_MANAGER=weir.numba, or

    from numba import cuda
    import weir.numba

    cuda.set_memory_manager(weir.numba.MemoryManager)  # before anything is on the GPU

Under `weir run` Numba's own manager gets Weir's memory too, but keeps what the program freed: up to
10 arrays, or 20% of the device. This one frees at once, which never waits, so that Weir can reuse the
memory and wait for it. Reports the budget as the device's memory. Without Weir swapped in, Numba's
own manager is used.

Numba does not say on which stream an array is used, so arrays are memory that any stream may use at
once (cuMemAlloc), and their frees wait for all streams. Such memory can be shared with another
process (`get_ipc_handle`).
"""

import collections
import ctypes
import sys

from numba.cuda import GetIpcHandleMixin, HostOnlyCUDAMemoryManager, MemoryInfo, MemoryPointer
from numba.cuda.cudadrv.driver import CudaAPIError, NumbaCUDAMemoryManager

from ._calls import active

_OUT_OF_MEMORY = 2
_INVALID_CONTEXT = 201

_driver = ctypes.CDLL("libcuda.so.1")
_driver.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
_driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
_driver.cuMemGetInfo_v2.argtypes = [ctypes.POINTER(ctypes.c_size_t)] * 2

# Freed on threads without a context, which the driver refuses; append and popleft are atomic.
_left = collections.deque()


class MemoryManager(GetIpcHandleMixin, HostOnlyCUDAMemoryManager):
    """Serves Numba's device arrays. Numba's base class serves pinned and managed memory."""

    def initialize(self):
        """Lets Numba keep freed pinned memory up to its share of the device's memory."""
        self.deallocations.memory_capacity = self.get_memory_info().total

    def memalloc(self, size):
        """Raises Numba's CudaAPIError with CUDA_ERROR_OUT_OF_MEMORY if there is no memory."""
        while _left:
            _free(_left.popleft())
        address = ctypes.c_uint64()
        code = _driver.cuMemAlloc_v2(ctypes.byref(address), size)
        if code == _OUT_OF_MEMORY:
            self.deallocations.clear()
            code = _driver.cuMemAlloc_v2(ctypes.byref(address), size)
        if code == _OUT_OF_MEMORY:
            raise CudaAPIError(code, f"CUDA_ERROR_OUT_OF_MEMORY: Weir has no {size} bytes")
        if code != 0:
            raise CudaAPIError(code, f"cuMemAlloc of {size} bytes")
        pointer = ctypes.c_void_p(address.value)
        return MemoryPointer(self.context, pointer, size, finalizer=_finalizer(address.value))

    def get_memory_info(self):
        """Returns what the budget still allows, and the budget."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        code = _driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        if code != 0:
            raise CudaAPIError(code, "cuMemGetInfo")
        return MemoryInfo(free.value, total.value)

    @property
    def interface_version(self):
        """Of Numba's interface for external memory managers."""
        return 1


def _finalizer(address):
    # Of the address alone: the finalizer must not keep the manager, and so the context, alive.
    return lambda: _free(address)


def _free(address):
    # Any other failure: the context is gone, and its memory with it.
    if _driver.cuMemFree_v2(address) == _INVALID_CONTEXT and not sys.is_finalizing():
        _left.append(address)


_numba_memory_manager = MemoryManager if active() else NumbaCUDAMemoryManager
