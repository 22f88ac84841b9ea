#pragma once

// Which of our functions a look-up gets instead of the driver's.

#include <cuda.h>

namespace weir::preload {

/// Whether a hook has this name among the symbols of the driver or of the management library.
[[nodiscard]] bool is_hooked(const char* symbol) noexcept;

/// For dlsym: what to hand out for `symbol` of one of these libraries, found at `real`; `real`
/// itself where that is not the library's or no hook stands in front of it.
[[nodiscard]] void* swap_symbol(const char* symbol, void* real) noexcept;

/// For cuGetProcAddress: what to hand out for what the driver found at `real` for `base`, `version`
/// and `flags`. Only where the driver gives the same for the version that a hook is made for: a
/// later form with other parameters is not ours to imitate. Hooks of one name are tried from the
/// oldest version on: a driver that is older than some of them has one function for several.
[[nodiscard]] void* swap_looked_up(const char* base, int version, cuuint64_t flags,
                                   void* real) noexcept;

}  // namespace weir::preload
