"""Tensors for the programs with PyTorch: filled on the host and copied, since a kernel needs a GPU."""

import ctypes
import os
import re

import torch

MIB = 1 << 20
GPU = torch.device("cuda:0")


def filled(value, mib=1, device=GPU):
    return torch.full((mib * MIB,), value, dtype=torch.uint8).to(device)


def holds(tensor, value):
    return bool((tensor.cpu() == value).all())


def is_native():
    """Returns whether PyTorch's own cache serves. Its figures do not depend on who serves its segments."""
    return torch.cuda.get_allocator_backend() == "native"


def check_plug():
    """Raises AssertionError if Weir's plug should be PyTorch's allocator, and is not."""
    if os.environ.get("WEIR_TORCH") == "plug" and torch.cuda.is_initialized() and not backend_is_own:
        assert is_plugged(), "PyTorch allocates without Weir's plug"


def is_plugged():
    with open("/proc/self/maps") as maps:
        plugs = set(re.findall(r"\S*/libweir_torch_\S*\.so", maps.read()))
    # The plug answers 1 if it is installed already, and 0 if PyTorch has another allocator in use.
    return any(ctypes.CDLL(plug).weir_torch_install(None, ctypes.c_size_t(0)) == 1 for plug in plugs)


backend_is_own = False  # the feature chooses an allocator itself


def choose_own_backend():
    global backend_is_own
    backend_is_own = True


def second_device(unavailable):
    if torch.cuda.device_count() < 2:
        unavailable("one device")
    return torch.device("cuda:1")
