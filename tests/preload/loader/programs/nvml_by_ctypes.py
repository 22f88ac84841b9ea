"""Does the same as nvml_program.c in Python's way: opens libraries and looks up by name (pynvml)."""

import ctypes
import sys


class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ["total", "free", "used"]]


class MemoryV2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint)]
    _fields_ += [(name, ctypes.c_ulonglong) for name in ["total", "reserved", "free", "used"]]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]
    _fields_ += [("instance", ctypes.c_uint), ("compute", ctypes.c_uint)]


def need(code):
    if code != 0:
        sys.exit(f"not so: the call returns 0 and not {code}")


def tell(nvml, when):
    device, memory, bar1 = ctypes.c_void_p(), Memory(), Memory()
    second = MemoryV2(version=0x02000028)
    need(nvml.nvmlInit_v2())
    need(nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
    need(nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)))
    need(nvml.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(second)))
    need(nvml.nvmlDeviceGetBAR1MemoryInfo(device, ctypes.byref(bar1)))
    count, processes = ctypes.c_uint(4), (Process * 4)()
    need(nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), processes))
    mine = processes[count.value - 1].used
    print(when, memory.total, memory.used, second.total, second.used, mine, bar1.total)


def main():
    nvml, cuda = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_ulonglong()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    tell(nvml, "before")
    need(cuda.cuInit(0))
    need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    need(cuda.cuCtxSetCurrent(context))
    need(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(30 << 20)))
    tell(nvml, "after")
    need(cuda.cuMemFree_v2(pointer))
    tell(nvml, "freed")
    need(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    print("driver", total.value, total.value - free.value)


main()
