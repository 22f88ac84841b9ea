"""Programs that were not made as tests: weir-train, and NVIDIA's cuBLAS."""

import os

from rows import main, run


def row_WeirTrainIsServed():
    train = os.environ["LOADER_TRAIN"]
    command = [train, "run", "--device", "cuda", "--batches", "4", "--batch-size", "8", "--seed", "7"]
    command += ["--budget", "64MiB", "--pool", "unpooled"]
    without = run(*command, preload=())
    without.expect(without.code == 0, "it runs without Weir")
    done = run(*command).expect_served()
    done.expect(done.swapped() >= {"cuMemAlloc", "cuMemFree"}, "its calls were swapped")
    done.expect(figures(done.out) == figures(without.out), "it comes to the same figures")


def figures(out):
    """Returns its lines without those with times, which differ from run to run."""
    return [line for line in out.splitlines() if "loss" in line]


def row_CublasLooksUpThroughWeir():
    cublas = os.environ["LOADER_CUBLAS"]
    if not cublas:
        print("not tried: the toolkit has no cuBLAS here")
        raise SystemExit(77)
    without = run("loader_cublas", cublas, preload=())
    without.expect(without.code == 0, "cuBLAS is opened without Weir")
    done = run("loader_cublas", cublas)
    done.expect(done.code == 0, "cuBLAS is opened")
    # Its runtime asks for all that it may ever call, and then for tables of the driver's which the
    # stand-in does not have: so it fails, with Weir as without.
    done.expect(done.out == without.out, "starting it comes to the same")
    wanted = {"cuMemAlloc", "cuMemFree", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemGetInfo"}
    wanted |= {"cuLaunchKernel", "cuLaunchKernelEx", "cuMemcpyHtoDAsync", "cuMemsetD8Async"}
    wanted |= {"cuStreamCreateWithPriority", "cuStreamBeginCapture", "cuStreamEndCapture"}
    wanted |= {"cuDevicePrimaryCtxRelease", "cuDevicePrimaryCtxReset", "cuLibraryLoadData"}
    missing = wanted - done.swapped("libcublas")
    done.expect(not missing, f"its look-ups of {sorted(missing)} were swapped")


main(globals())
