"""Tensors for the programs with PyTorch: filled on the host and copied, since a kernel needs a GPU."""

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


def second_device(unavailable):
    if torch.cuda.device_count() < 2:
        unavailable("one device")
    return torch.device("cuda:1")
