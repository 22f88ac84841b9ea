#pragma once

// The sources of generated batches.

#include <cstdint>
#include <string_view>

namespace weir {

enum class InputKind : std::uint8_t {
  kHost,   ///< a reader makes them in host memory during the run; each is copied
  kRing,   ///< some are made in host memory before the run and copied in turn
  kDrawn,  ///< the device draws them, beside its other work
};

/// Parses `host`, `ring` or `drawn`. Otherwise throws UsageError with `name`.
[[nodiscard]] InputKind parse_inputs(std::string_view name, std::string_view text);
/// Returns the text that parse_inputs reads.
[[nodiscard]] std::string_view to_string(InputKind kind) noexcept;

}  // namespace weir
