#pragma once

// Reads `.pftrace` files that our writer wrote.

#include <string>
#include <string_view>

#include "tools/timeline/model/read_limits.hpp"
#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads the file at `path`. One that is cut gives what is whole, and its last process is not
/// complete. Throws UsageError of one line, which names the file and the byte, if the file cannot
/// be read, is no trace of ours, is damaged, or has more than `limits` allow.
[[nodiscard]] Timeline read_perfetto(const std::string& path, const ReadLimits& limits = {});
/// The same from memory. `name` stands for the path in messages.
[[nodiscard]] Timeline read_perfetto_bytes(std::string_view bytes, const std::string& name,
                                           const ReadLimits& limits = {});
/// Whether a file that begins with `bytes`, of which 64 are enough, is one that our writer wrote.
[[nodiscard]] bool looks_like_perfetto(std::string_view bytes) noexcept;

}  // namespace weir::timeline
