#pragma once

// The unwinder of GCC 12 and later asks the C library in which object an address lies, by
// _dl_find_object, which the C library has only since 2.35. A program or library that contains the
// unwinder (-static-libgcc) links find_object.cpp, which defines that function: it calls the C
// library's where there is one, and otherwise walks the loaded objects, as unwinders did before.

#include <dlfcn.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE

namespace weir {

/// Fills `found` for the object that has `address` in one of its segments. Returns 0, or -1 if no
/// object has it, or if the object has no data for unwinding. Takes the loader's lock. The link map
/// stays null: the unwinder does not read it.
[[nodiscard]] int walk_objects(void* address, dl_find_object& found) noexcept;

}  // namespace weir

#endif
