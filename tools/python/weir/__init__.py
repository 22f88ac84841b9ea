"""Marks batches for Weir, asks it about memory, and takes memory from it, from Python.

    import weir

    for inputs in loader:
        with weir.batch("train"):
            step(inputs)
    print(weir.memory_info())

Without Weir swapped in, batches and questions do nothing, and `allocate` raises MemoryError;
`active()` tells. ctypes releases the interpreter's lock during each call, so other threads go on
while one is held back. Needs only Python 3.8 or later and its standard library, and no build of
Weir: copy the folder where you like. More: docs/c-api.md, and docs/frameworks.md for these:

    weir.numba   Numba's memory manager: NUMBA_CUDA_MEMORY_MANAGER=weir.numba
    weir.cupy    CuPy's allocator: cupy.cuda.set_allocator(weir.cupy.allocate)
    weir.rmm     RMM's resource: rmm.mr.set_current_device_resource(weir.rmm.resource())
"""

from ._blocks import allocate, free, record_use
from ._calls import (
    MemoryInfo,
    Setting,
    active,
    batch,
    memory_info,
    set_budget,
    settings,
    timeline,
    trim,
)

__all__ = [
    "MemoryInfo",
    "Setting",
    "active",
    "allocate",
    "batch",
    "free",
    "memory_info",
    "record_use",
    "set_budget",
    "settings",
    "timeline",
    "trim",
]
