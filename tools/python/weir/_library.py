"""The functions of weir.h in this process, by ctypes."""

import ctypes
from typing import Optional

_ALWAYS = {
    "weir_batch_begin": (ctypes.c_int, [ctypes.c_char_p]),
    "weir_batch_end": (None, []),
    "weir_memory_info": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p]),
    "weir_trim": (ctypes.c_uint64, [ctypes.c_int]),
    "weir_settings": (ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_size_t]),
    "weir_timeline_start": (ctypes.c_int, [ctypes.c_char_p]),
    "weir_timeline_stop": (None, []),
}
# Of versions 3 and 4: a library that is swapped in may be older than this module.
_LATER = {
    "weir_set_budget": (ctypes.c_int, [ctypes.c_int, ctypes.c_uint64]),
    "weir_allocate": (ctypes.c_void_p, [ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p]),
    "weir_free": (None, [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]),
    "weir_record_use": (None, [ctypes.c_void_p, ctypes.c_void_p]),
}


def _swapped_in() -> Optional[ctypes.CDLL]:
    found = ctypes.CDLL(None)
    for name, (result, arguments) in {**_ALWAYS, **_LATER}.items():
        try:
            function = getattr(found, name)
        except AttributeError:
            if name in _ALWAYS:
                return None
            continue
        function.restype = result
        function.argtypes = arguments
    return found


library = _swapped_in()


def has(name: str) -> bool:
    """Whether Weir is swapped in, in a version that has the function."""
    return library is not None and hasattr(library, name)
