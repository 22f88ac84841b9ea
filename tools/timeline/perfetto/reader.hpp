#pragma once

// Reads `.pftrace` files of our writer.

#include <string>
#include <string_view>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads the file at `path`. From a truncated file it reads the complete part, and the last process
/// is not complete. Throws UsageError of one line, with the file and the byte, if the file cannot
/// be read, is not our trace, is damaged, or exceeds `limits`.
[[nodiscard]] Timeline read_perfetto(const std::string& path, const ReadLimits& limits = {});
/// Reads from memory. `name` replaces the path in messages.
[[nodiscard]] Timeline read_perfetto_bytes(std::string_view bytes, const std::string& name,
                                           const ReadLimits& limits = {});
/// Returns whether a file that begins with `bytes` is of our writer. 64 bytes are enough.
[[nodiscard]] bool looks_like_perfetto(std::string_view bytes) noexcept;

}  // namespace weir::timeline
