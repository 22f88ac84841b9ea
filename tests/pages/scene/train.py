"""A program with a GPU in three lines of a training loop, for the commands that pages show. It
allocates, frees and synchronizes by the driver's functions alone."""

import ctypes
import sys

driver = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    code = getattr(driver, name)(*arguments)
    if code != 0:
        sys.exit(f"{name} failed with code {code}")


call("cuInit", 0)
context, device = ctypes.c_void_p(), ctypes.c_int()
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
for step in range(32):
    live = []
    for size in (1 << 20, 3 << 20, 300_000 + 4096 * step):
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        call("cuMemsetD8Async", pointer, ctypes.c_ubyte(step), ctypes.c_size_t(size), None)
        live.append(pointer)
    call("cuStreamSynchronize", None)
    for pointer in live:
        call("cuMemFree_v2", pointer)
