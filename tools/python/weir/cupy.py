"""CuPy's allocator: each array in stream order from Weir's pools.

    import cupy
    import weir.cupy

    cupy.cuda.set_allocator(weir.cupy.allocate)

An array belongs to the stream that was current when it was made, as with CuPy's own pools: let other
streams wait for that one before they use it, and that one for them before the array goes.
"""

import weakref

import cupy

from . import _blocks
from ._calls import memory_info


class _Owner:
    # What CuPy keeps while an array needs the block. Keeps the stream: the block is freed in its order.
    pass


def allocate(size: int) -> "cupy.cuda.MemoryPointer":
    """Allocates `size` bytes on CuPy's current device and stream.

    Raises cupy.cuda.memory.OutOfMemoryError if there is no memory or Weir is not swapped in.
    """
    device = cupy.cuda.device.get_device_id()
    stream = cupy.cuda.get_current_stream()
    try:
        address = _blocks.allocate(size, device, stream.ptr)
    except MemoryError as error:
        raise cupy.cuda.memory.OutOfMemoryError(size, _allocated(device)) from error
    owner = _Owner()
    if address:
        weakref.finalize(owner, _free, address, device, stream)
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(address, size, owner, device), 0)


def _free(address, device, stream):
    _blocks.free(address, device, stream.ptr)


def _allocated(device):
    memory = memory_info(device)
    return 0 if memory is None else memory.allocated
