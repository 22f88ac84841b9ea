"""RMM's memory resource over Weir's pools, for Python alone.

    import rmm
    import weir.rmm

    rmm.mr.set_current_device_resource(weir.rmm.resource())

RMM calls Python for each block, which takes some microseconds and the interpreter's lock. A C++
program uses weir/cuda_resource.hpp instead.
"""

import rmm

from . import _blocks


def resource(device: int = 0) -> "rmm.mr.CallbackMemoryResource":
    """Returns a resource for the device. RMM turns its MemoryError into one of its own."""

    def allocate(size, stream):
        return _blocks.allocate(size, device, stream)

    def free(address, size, stream):
        _blocks.free(address, device, stream)

    return rmm.mr.CallbackMemoryResource(allocate, free)
