"""The parts of PyTorch that the recipe of docs/c-api.md uses. Calls its arguments as PyTorch does."""

import ctypes
import types


class _Hooks:
    def __init__(self, alloc, free):
        self.functions = {"alloc": alloc, "free": free}

    def __getattr__(self, name):
        if not (name.startswith("set_") and name.endswith("_fn")):
            raise AttributeError(name)
        return lambda address: self.functions.update({name[4:-3]: address})


class _PluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        named = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in (alloc, free))
        self._hooks = _Hooks(*named)

    def allocator(self):
        return self._hooks


def _change_current_allocator(allocator):
    size, pointer, device = ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_int
    functions = allocator.allocator().functions

    def call(name, result, *arguments):
        types_ = [type(argument) for argument in arguments]
        return ctypes.CFUNCTYPE(result, *types_)(functions[name])(*arguments)

    call("init", None, device(1))
    memory = pointer(call("alloc", pointer, size(64), device(1), pointer(7)))
    found = ctypes.c_size_t(9)
    if call("base_alloc", pointer, memory, pointer(ctypes.addressof(found))) != memory.value:
        raise AssertionError("a block is its own base")
    call("record_stream", None, memory, pointer(8))
    call("free", None, memory, size(64), device(1), pointer(7))
    call("reset", None)
    call("memory_fraction", None, ctypes.c_double(0.5), device(1))


cuda = types.SimpleNamespace(
    memory=types.SimpleNamespace(
        CUDAPluggableAllocator=_PluggableAllocator,
        change_current_allocator=_change_current_allocator,
    )
)
