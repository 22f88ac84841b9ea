#!/usr/bin/env python3
"""Prints the folders of NVIDIA's libraries in this Python's packages: a machine may have cuBLAS and
CUPTI only there. Imports no package."""

import importlib.util
import pathlib
import sys

# pip: nvidia/cublas/lib and nvidia/cuda_cupti/lib for CUDA 12, nvidia/cu13/lib for 13.
# conda: PREFIX/lib.
WHERE = "*/lib"
NAMES = ("libcublas.so.*", "libcupti.so.*")


def roots(package):
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return list(found.submodule_search_locations or []) if found else []


def main():
    folders = [folder for root in roots("nvidia") for folder in sorted(pathlib.Path(root).glob(WHERE))]
    for folder in [*folders, pathlib.Path(sys.prefix) / "lib"]:
        if any(list(folder.glob(name)) for name in NAMES):
            print(folder.resolve())


if __name__ == "__main__":
    main()
