#pragma once

// What a look-up without a library finds for the program that asks: RTLD_DEFAULT and RTLD_NEXT mean
// what they mean to the caller, and the loader takes that from the address it returns to.

namespace weir::preload {

/// What dlsym(RTLD_DEFAULT, name) of the code at `caller` finds where this library is not there:
/// the first of the global scope, or else of the caller's library and of what that needs. Null
/// where that is nothing. Leaves no message for dlerror. Thread-safe.
[[nodiscard]] void* found_by_default(const char* name, const void* caller) noexcept;

/// What dlsym(RTLD_NEXT, name) of the code at `caller` finds where this library is not there and
/// the caller comes before it: the program itself, or a library that was preloaded first. Null
/// where it comes later, or where it finds nothing. Leaves no message for dlerror. Thread-safe.
[[nodiscard]] void* found_next(const char* name, const void* caller) noexcept;

}  // namespace weir::preload
