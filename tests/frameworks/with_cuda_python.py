"""cuda-python's bindings of the driver, and cuda.core, on the stand-in: with_cuda_python.py FEATURE."""

import multiprocessing
import os

import numpy as np
from cuda.bindings import driver
from cuda.core import Device

from feature import feature, main

MIB = 1 << 20
OK = driver.CUresult.CUDA_SUCCESS


def call(function, *arguments):
    """Returns the driver's result. Raises AssertionError with its code if it failed."""
    code, *given = function(*arguments)
    assert code == OK, (function.__name__, code)
    return given[0] if len(given) == 1 else given


def start(device=0):
    call(driver.cuInit, 0)
    context = call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, device))
    call(driver.cuCtxSetCurrent, context)
    return context


def fill_and_read(pointer, value, size=1000):
    call(driver.cuMemsetD8, pointer, value, size)
    back = np.zeros(size, np.uint8)
    call(driver.cuMemcpyDtoH, back, pointer, size)
    return (back == value).all()


@feature
def creation():
    start()
    pointers = [call(driver.cuMemAlloc, size) for size in (1, 1000, MIB, 3 * MIB + 1)]
    assert len({int(pointer) for pointer in pointers}) == len(pointers)
    assert all(int(pointer) % 256 == 0 for pointer in pointers)
    pointer, pitch = call(driver.cuMemAllocPitch, 1000, 10, 4)
    assert pitch >= 1000 and fill_and_read(pointer, 1, pitch * 10)


@feature
def copies():
    start()
    one, two = (call(driver.cuMemAlloc, 1000) for _ in range(2))
    call(driver.cuMemsetD8, one, 5, 1000)
    call(driver.cuMemcpyDtoD, two, one, 1000)
    assert fill_and_read(two, 6) and fill_and_read(one, 7)


@feature
def frees():
    start()
    kept = call(driver.cuMemAlloc, MIB)
    free = call(driver.cuMemGetInfo)[0]
    for size in range(1, 300):
        call(driver.cuMemFree, call(driver.cuMemAlloc, size * 1000))
    assert call(driver.cuMemGetInfo)[0] == free
    call(driver.cuMemFree, kept)


@feature
def misused_frees():
    start()
    pointer, neighbour = (call(driver.cuMemAlloc, MIB) for _ in range(2))
    invalid = driver.CUresult.CUDA_ERROR_INVALID_VALUE
    assert driver.cuMemFree(driver.CUdeviceptr(int(pointer) + 512))[0] == invalid
    call(driver.cuMemFree, pointer)
    assert driver.cuMemFree(pointer)[0] == invalid
    assert fill_and_read(neighbour, 9)
    again = call(driver.cuMemAlloc, MIB)
    assert int(again) != int(neighbour) and fill_and_read(again, 3)


@feature
def streams():
    start()
    one, two = (call(driver.cuStreamCreate, 1) for _ in range(2))
    event = call(driver.cuEventCreate, 2)
    for value in range(100):
        pointer = call(driver.cuMemAllocAsync, MIB, one)
        call(driver.cuMemsetD8Async, pointer, value, MIB, one)
        call(driver.cuEventRecord, event, one)
        call(driver.cuStreamWaitEvent, two, event, 0)
        back = np.zeros(MIB, np.uint8)
        call(driver.cuMemcpyDtoHAsync, back, pointer, MIB, two)
        call(driver.cuMemFreeAsync, pointer, two)
        call(driver.cuStreamSynchronize, two)
        assert (back == value).all()
    for stream in (one, two):
        call(driver.cuStreamDestroy, stream)


@feature
def frees_the_other_way():
    start()
    stream = call(driver.cuStreamCreate, 0)
    pointer = call(driver.cuMemAllocAsync, MIB, stream)
    call(driver.cuStreamSynchronize, stream)
    call(driver.cuMemFree, pointer)
    call(driver.cuMemFreeAsync, call(driver.cuMemAlloc, MIB), stream)
    call(driver.cuStreamSynchronize, stream)


@feature
def the_default_pool():
    start()
    stream = call(driver.cuStreamCreate, 0)
    pool = call(driver.cuDeviceGetDefaultMemPool, call(driver.cuDeviceGet, 0))
    attributes = driver.CUmemPool_attribute
    used = attributes.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    high = attributes.CU_MEMPOOL_ATTR_USED_MEM_HIGH
    call(driver.cuMemPoolSetAttribute, pool, attributes.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
         driver.cuuint64_t(2**64 - 1))
    assert int(call(driver.cuMemPoolGetAttribute, pool, used)) == 0
    pointer = call(driver.cuMemAllocAsync, 8 * MIB, stream)
    assert int(call(driver.cuMemPoolGetAttribute, pool, used)) >= 8 * MIB
    call(driver.cuMemFreeAsync, pointer, stream)
    call(driver.cuStreamSynchronize, stream)
    call(driver.cuMemPoolTrimTo, pool, 0)
    assert int(call(driver.cuMemPoolGetAttribute, pool, used)) == 0
    assert int(call(driver.cuMemPoolGetAttribute, pool, high)) >= 8 * MIB


@feature
def a_pool_of_ones_own():
    start()
    stream = call(driver.cuStreamCreate, 0)
    wanted = driver.CUmemPoolProps()
    wanted.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = 0
    pool = call(driver.cuMemPoolCreate, wanted)
    pointer = call(driver.cuMemAllocFromPoolAsync, MIB, pool, stream)
    call(driver.cuMemFreeAsync, pointer, stream)
    call(driver.cuStreamSynchronize, stream)
    call(driver.cuMemPoolDestroy, pool)


@feature
def graphs_without_kernels():
    start()
    stream = call(driver.cuStreamCreate, 1)
    pointer = call(driver.cuMemAlloc, 1000)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    call(driver.cuStreamBeginCapture, stream, mode)
    call(driver.cuMemsetD8Async, pointer, 7, 1000, stream)
    graph = call(driver.cuStreamEndCapture, stream)
    runnable = call(driver.cuGraphInstantiate, graph, 0)
    for _ in range(3):
        assert fill_and_read(pointer, 1)
        call(driver.cuGraphLaunch, runnable, stream)
        call(driver.cuStreamSynchronize, stream)
        back = np.zeros(1000, np.uint8)
        call(driver.cuMemcpyDtoH, back, pointer, 1000)
        assert (back == 7).all()
    call(driver.cuGraphExecDestroy, runnable)
    call(driver.cuGraphDestroy, graph)


@feature
def memory_of_a_captured_graph():
    start()
    stream = call(driver.cuStreamCreate, 1)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    call(driver.cuStreamBeginCapture, stream, mode)
    pointer = call(driver.cuMemAllocAsync, MIB, stream)
    call(driver.cuMemsetD8Async, pointer, 7, MIB, stream)
    call(driver.cuMemFreeAsync, pointer, stream)
    graph = call(driver.cuStreamEndCapture, stream)
    runnable = call(driver.cuGraphInstantiate, graph, 0)
    for _ in range(3):
        call(driver.cuGraphLaunch, runnable, stream)
    call(driver.cuStreamSynchronize, stream)


@feature
def mapped_memory():
    start()
    wanted = driver.CUmemAllocationProp()
    wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = 0
    page = call(driver.cuMemGetAllocationGranularity, wanted,
                driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM)
    address = call(driver.cuMemAddressReserve, 2 * page, 0, 0, 0)
    handle = call(driver.cuMemCreate, page, wanted, 0)
    call(driver.cuMemMap, address, page, 0, handle, 0)
    access = driver.CUmemAccessDesc()
    access.location = wanted.location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    call(driver.cuMemSetAccess, address, page, [access], 1)
    assert fill_and_read(address, 8)
    call(driver.cuMemUnmap, address, page)
    call(driver.cuMemRelease, handle)
    call(driver.cuMemAddressFree, address, 2 * page)


@feature
def out_of_memory_and_recovery():
    start()
    free = call(driver.cuMemGetInfo)[0]
    kept = []
    while (given := driver.cuMemAlloc(free // 4))[0] == OK:
        kept.append(given[1])
    assert given[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert 3 <= len(kept) <= 4, len(kept)
    for pointer in kept:
        call(driver.cuMemFree, pointer)
    call(driver.cuMemFree, call(driver.cuMemAlloc, free // 2))


def read_shared(handle, answer):
    try:
        start()
        opened = driver.CUipcMemHandle()
        opened.reserved = handle
        pointer = call(driver.cuIpcOpenMemHandle, opened, 1)
        back = np.zeros(1000, np.uint8)
        call(driver.cuMemcpyDtoH, back, pointer, 1000)
        call(driver.cuIpcCloseMemHandle, pointer)
        answer.put(int(back.sum()))
    except BaseException as error:
        answer.put(repr(error))


@feature
def shared_with_a_second_process():
    start()
    pointer = call(driver.cuMemAlloc, 2 * MIB)
    call(driver.cuMemsetD8, pointer, 7, 1000)
    handle = call(driver.cuIpcGetMemHandle, pointer)
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    child = context.Process(target=read_shared, args=(handle.reserved, answer))
    child.start()
    got = answer.get(timeout=60)
    child.join()
    assert got == 7000, got
    call(driver.cuMemFree, pointer)


@feature
def workers_after_fork():
    start()
    pointer = call(driver.cuMemAlloc, MIB)
    child = os.fork()
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    call(driver.cuMemFree, pointer)


@feature
def buffers_of_cuda_core():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    for size in (1, 1000, MIB):
        buffer = device.allocate(size, stream=stream)
        assert buffer.size == size
        buffer.close(stream)
    stream.sync()


if __name__ == "__main__":
    main()
