"""Batches, and what can be asked and set. Without Weir swapped in, every function does nothing."""

import contextlib
import ctypes
import os
from typing import Dict, Iterator, NamedTuple, Optional

from ._library import has, library


class MemoryInfo(NamedTuple):
    """A device's memory in bytes; allocated + awaiting + cached is reserved."""

    total: int  # of the device
    budget: int  # the program's part of it
    allocated: int  # handed out by the pool
    awaiting: int  # freed, with the device not known to be done
    cached: int  # free, kept for reuse
    reserved: int  # obtained from the driver
    passed: int  # served by the driver itself, counted against the budget


class Setting(NamedTuple):
    """A value in force and its source, such as WEIR_BUDGET."""

    value: str
    source: str


class _Memory(ctypes.Structure):
    # weir_memory in weir.h
    _fields_ = [("size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64) for name in MemoryInfo._fields
    ]


def active() -> bool:
    """Whether Weir is swapped into this process."""
    return library is not None


@contextlib.contextmanager
def batch(kind: str = "") -> Iterator[bool]:
    """Runs the block as a batch of the calling thread on its current device.

    Entering may hold the thread back until memory of earlier batches is free, for at most
    WEIR_MAX_WAIT. `kind` names batches that need about the same memory. Inside an open batch of the
    same thread this joins that one. The batch ends with the block, also by an exception; the same
    thread must enter and leave it. Yields True if a batch began or was joined, False if it was
    skipped or CUDA was not used on the device yet.
    """
    if library is None:
        yield False
        return
    began = library.weir_batch_begin(kind.encode("utf-8", "replace"))
    try:
        yield bool(began)
    finally:
        library.weir_batch_end()


def memory_info(device: int = 0) -> Optional[MemoryInfo]:
    """Returns a device's memory; None without such a device or before CUDA is used on it."""
    if library is None:
        return None
    memory = _Memory(size=ctypes.sizeof(_Memory))
    if library.weir_memory_info(device, ctypes.byref(memory)) == 0:
        return None
    return MemoryInfo(*(getattr(memory, name) for name in MemoryInfo._fields))


def trim(device: int = 0) -> int:
    """Returns cached memory that the device is done with to the driver, and the number of bytes.

    -1 means every device.
    """
    return 0 if library is None else library.weir_trim(device)


def set_budget(budget: int, device: int = 0) -> bool:
    """Sets the device's budget in bytes, from 1 MiB to the device's total.

    Cached memory above it goes back to the driver at once, allocated memory as it is freed. -1 means
    every device that CUDA was used on. Returns False and changes nothing if the budget is out of
    range or CUDA was not used yet.
    """
    if not has("weir_set_budget") or not 0 <= budget < 1 << 64:
        return False
    return bool(library.weir_set_budget(device, budget))


@contextlib.contextmanager
def timeline(file: Optional[str] = None) -> Iterator[bool]:
    """Records a timeline while the block runs.

    `file` names it as WEIR_TIMELINE does; None continues the recording that the variable or an
    earlier block began. A process has one file: any other name is refused, with a line on standard
    error. Yields True if it records. After the block the file is complete.
    """
    if library is None:
        yield False
        return
    recording = library.weir_timeline_start(None if file is None else os.fsencode(file))
    try:
        yield bool(recording)
    finally:
        if recording:
            library.weir_timeline_stop()


def settings() -> Dict[str, Setting]:
    """Returns the settings in force by name; empty before CUDA is used."""
    if library is None:
        return {}
    text = ctypes.create_string_buffer(library.weir_settings(None, 0) + 1)
    # Settings come into force once; if that happens between the two calls, the text grows.
    while library.weir_settings(text, len(text)) >= len(text):
        text = ctypes.create_string_buffer(2 * len(text))
    found = {}
    for line in text.value.decode("utf-8", "replace").splitlines():
        name, _, rest = line.partition("=")
        value, _, source = rest.rpartition(" (")
        found[name] = Setting(value, source[:-1])
    return found
