"""Takes the first GPU's free memory except BYTES, and holds it until standard input ends. Programs
beside it then have only BYTES. Needs only the driver.

    ballast.py --leave BYTES
"""

import argparse
import ctypes
import sys


def check(code, what):
    if code != 0:
        sys.exit(f"ballast: {what} returned {code}")


def free_bytes(driver):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    check(driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return free.value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leave", type=int, required=True)
    leave = parser.parse_args().leave
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        sys.exit(f"ballast: there is no driver: {error}")
    context = ctypes.c_void_p()
    device = ctypes.c_int()
    check(driver.cuInit(0), "cuInit")
    check(driver.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(driver.cuCtxSetCurrent(context), "cuCtxSetCurrent")

    taken = 0
    piece = 1 << 30
    while piece >= 1 << 20:
        # The own context grows a little with each allocation, so ask again each time.
        if free_bytes(driver) - leave < piece:
            piece //= 2
            continue
        pointer = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(piece)) != 0:
            piece //= 2
            continue
        taken += piece
    print(f"holds {taken} bytes, leaves {free_bytes(driver)}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
