"""A fake of CuPy, which cannot run without a GPU: the names that weir.cupy uses, as CuPy calls them."""

import types


class _OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0):
        super().__init__(size, total, limit)


class Stream:
    def __init__(self, ptr):
        self.ptr = ptr


class _UnownedMemory:
    def __init__(self, ptr, size, owner, device_id=-1):
        if ptr == 0 and device_id < 0:
            raise ValueError("CuPy asks the driver for the device of the pointer, which null has none of")
        self.ptr, self.size, self.owner, self.device_id = ptr, size, owner, device_id


class _MemoryPointer:
    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset


current = {"device": 0, "stream": Stream(0)}

cuda = types.SimpleNamespace(
    MemoryPointer=_MemoryPointer,
    Stream=Stream,
    UnownedMemory=_UnownedMemory,
    device=types.SimpleNamespace(get_device_id=lambda: current["device"]),
    get_current_stream=lambda: current["stream"],
    memory=types.SimpleNamespace(OutOfMemoryError=_OutOfMemoryError),
)
