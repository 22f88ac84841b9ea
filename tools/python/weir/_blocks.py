"""Memory of Weir's pools, in the order of a stream, for others to build on."""

from ._library import has, library


def _handle(stream) -> int:
    """Returns the handle of a stream: a number, None, or an object with `__cuda_stream__`."""
    if stream is None:
        return 0
    return stream if isinstance(stream, int) else stream.__cuda_stream__()[1]


def allocate(size: int, device: int = 0, stream=None) -> int:
    """Allocates `size` bytes for later work on `stream`, and returns their address; 0 for 0 bytes.

    `stream` is a handle (cudaStream_t) as a number, an object with `__cuda_stream__`, or None for
    the legacy default stream. The device's primary context need not be current. Work on any other
    stream may use the memory once that stream waits for this one. Raises MemoryError if there is no
    memory or Weir is not swapped in.
    """
    if size < 0:
        raise ValueError(f"a size is 0 bytes or more, not {size}")
    if size == 0:
        return 0
    if not has("weir_allocate"):
        raise MemoryError("Weir is not swapped in, or older than its C interface of version 4")
    address = library.weir_allocate(device, size, _handle(stream))
    if not address:
        raise MemoryError(f"Weir has no {size} bytes on device {device}")
    return address


def free(address: int, device: int = 0, stream=None) -> None:
    """Frees what `allocate` returned, in the order of `stream`: work enqueued so far may use it."""
    if address:
        library.weir_free(device, address, _handle(stream))


def record_use(address: int, stream=None) -> None:
    """Records that work on `stream` uses the block too: its free will wait for that work."""
    if address:
        library.weir_record_use(address, _handle(stream))
