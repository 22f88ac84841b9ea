#!/usr/bin/env python3
"""Imports the frameworks that the programs use, so that none of their runs waits for a cold disk. Uses
no GPU, and is content where a framework is not there."""

import importlib
import os
import time

NAMES = ("torch", "torch._dynamo", "torch._inductor", "cupy", "jax.numpy")


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["JAX_PLATFORMS"] = "cpu"
    for name in NAMES:
        started = time.monotonic()
        try:
            importlib.import_module(name)
            said = "is read"
        except Exception as error:  # noqa: BLE001: the programs will report it
            said = f"is not there: {error}"
        print(f"{name} {said}, {time.monotonic() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main()
