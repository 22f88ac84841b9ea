"""A fake of RMM's Python package, which cannot run without a GPU: what weir.rmm uses, as RMM calls it."""

import types


class _Stream:
    def __init__(self, handle):
        self._handle = handle

    def __cuda_stream__(self):
        return (0, self._handle)


class _CallbackMemoryResource:
    def __init__(self, allocate_func, deallocate_func):
        self._allocate, self._deallocate = allocate_func, deallocate_func

    def allocate(self, size, handle):
        return self._allocate(size, _Stream(handle))

    def deallocate(self, address, size, handle):
        self._deallocate(address, size, _Stream(handle))


mr = types.SimpleNamespace(CallbackMemoryResource=_CallbackMemoryResource)
