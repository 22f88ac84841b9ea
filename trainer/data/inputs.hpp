#pragma once

// Where generated batches come from.

#include <cstdint>
#include <string_view>

namespace weir {

enum class InputKind : std::uint8_t {
  kHost,   ///< a reader makes them in host memory on the way, and each is copied
  kRing,   ///< some are made in host memory before the run, and copied in turn
  kDrawn,  ///< the device draws them, beside its other work
};

/// `host`, `ring` or `drawn`. UsageError otherwise, naming `name`.
[[nodiscard]] InputKind parse_inputs(std::string_view name, std::string_view text);
/// As parse_inputs reads it.
[[nodiscard]] std::string_view to_string(InputKind kind) noexcept;

}  // namespace weir
