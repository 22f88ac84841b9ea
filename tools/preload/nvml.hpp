#pragma once

// What a device has left before a program has a context on it, when the driver does not say yet.

#include <optional>

#include "allocator/bytes.hpp"
#include "tools/preload/driver.hpp"

namespace weir::preload {

/// As the management library says, which comes with the driver; nothing where it is not there or
/// does not know the device. Of all programs together. Thread-safe.
[[nodiscard]] std::optional<Bytes> free_without_context(const Driver& driver,
                                                        CUdevice device) noexcept;

}  // namespace weir::preload
