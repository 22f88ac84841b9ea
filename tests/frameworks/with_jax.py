"""JAX's memory on the stand-in: with_jax.py FEATURE.

XLA's plug-in calls the driver for memory and the shared CUDA runtime for the rest. JAX looks for device
files, which the stand-in does not have, before it loads the plug-in: that check is skipped here. Computations
need kernels, and are skipped too.
"""

import os

os.environ["JAX_PLATFORMS"] = "cuda"
os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # it would want cuBLAS, cuDNN and more
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import jax  # noqa: E402
import jax._src.hardware_utils  # noqa: E402
import numpy as np  # noqa: E402

from feature import feature, main, unavailable  # noqa: E402

MIB = 1 << 20
jax._src.hardware_utils.has_visible_nvidia_gpu = lambda: True


def put(value, mib):
    return jax.device_put(np.full(mib * MIB // 4, value, np.float32))


def without_preallocation(allocator=None):
    """Call before the first use of the device. Sets the recipe's allocator by default."""
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if allocator is not None:
        os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = allocator


def put_and_read():
    arrays = [put(value, 1 + value % 5) for value in range(20)]
    assert all((np.asarray(array) == value).all() for value, array in enumerate(arrays))
    for array in arrays:
        array.delete()
    assert (np.asarray(put(7, 3)) == 7).all()


@feature
def creation():
    assert len(jax.devices()) >= 1
    put_and_read()


@feature
def without_preallocating():
    without_preallocation()
    put_and_read()


@feature
def allocator_bfc():
    without_preallocation("bfc")
    put_and_read()


@feature
def allocator_cuda_async():
    without_preallocation("cuda_async")
    put_and_read()


@feature
def allocator_platform():
    without_preallocation("platform")
    put_and_read()


@feature
def frees():
    without_preallocation()
    for value in range(300):
        put(value, 8).delete()


@feature
def memory_statistics():
    without_preallocation()
    array = put(1, 32)
    statistics = jax.devices()[0].memory_stats()
    assert statistics["bytes_in_use"] >= 32 * MIB, statistics
    array.delete()


@feature
def memory_fraction():
    os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = ".25"
    put_and_read()


@feature
def out_of_memory_and_recovery():
    without_preallocation()
    kept = []
    try:
        for _ in range(1000):
            kept.append(put(1, 64))
            kept[-1].block_until_ready()
    except Exception as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
    assert 3 < len(kept) < 1000, len(kept)
    for array in kept:
        array.delete()
    assert (np.asarray(put(7, 64)) == 7).all()


@feature
def workers_after_fork():
    without_preallocation()
    put_and_read()
    child = os.fork()
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    put_and_read()


@feature
def computations():
    unavailable("the stand-in runs no kernel that a compiler made")


if __name__ == "__main__":
    main()
