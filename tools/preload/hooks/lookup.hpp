#pragma once

// Which of our functions a look-up gets instead of the driver's.

#include <cuda.h>

namespace weir::preload {

/// Whether a hook has this name among the symbols of the driver or NVML.
[[nodiscard]] bool is_hooked(const char* symbol) noexcept;

/// For dlsym: returns what replaces `symbol`, found at `real` in one of these libraries; `real`
/// itself if it is not the library's or not hooked.
[[nodiscard]] void* swap_symbol(const char* symbol, void* real) noexcept;

/// For cuGetProcAddress: returns what replaces `real`, the driver's answer for `base`, `version`
/// and `flags`. Replaces only what the driver also gives for the hook's own version: we cannot
/// imitate a later form with other parameters. Tries hooks of one name from the oldest version on,
/// because an old driver has one function for several of them.
[[nodiscard]] void* swap_looked_up(const char* base, int version, cuuint64_t flags,
                                   void* real) noexcept;

}  // namespace weir::preload
