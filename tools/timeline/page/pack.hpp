#pragma once

// Packs tables of whole numbers as short texts, for a self-contained page.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::timeline {

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// Packs columns of equal length. Each column becomes the differences of neighbours, zigzag-encoded
/// as LEB128. All columns together are compressed by zlib and encoded in base64. `unpack` in
/// page.js reads them.
[[nodiscard]] std::string pack(std::span<const std::vector<std::int64_t>> columns);

}  // namespace weir::timeline
