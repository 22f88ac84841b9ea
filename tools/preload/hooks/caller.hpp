#pragma once

// What a look-up without a library finds for its caller. RTLD_DEFAULT and RTLD_NEXT depend on the
// caller, which the loader takes from the return address.

namespace weir::preload {

/// Returns what dlsym(RTLD_DEFAULT, name) of the code at `caller` would find without this library:
/// the first in the global scope, else in the caller's library and its dependencies, else null.
/// Leaves no message for dlerror. Thread-safe.
[[nodiscard]] void* found_by_default(const char* name, const void* caller) noexcept;

/// Returns what dlsym(RTLD_NEXT, name) of the code at `caller` would find without this library, if
/// the caller comes before it: the program, or a library preloaded earlier. Null if the caller
/// comes later or nothing is found. Leaves no message for dlerror. Thread-safe.
[[nodiscard]] void* found_next(const char* name, const void* caller) noexcept;

}  // namespace weir::preload
