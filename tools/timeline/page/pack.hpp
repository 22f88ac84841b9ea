#pragma once

// Tables of whole numbers as short texts, for a page that carries its own data.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::timeline {

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// Columns of equal length. For each column the differences of neighbours, zigzag, as LEB128; all
/// of them after each other through zlib, and that in base64. page.js reads it in `unpack`.
[[nodiscard]] std::string pack(std::span<const std::vector<std::int64_t>> columns);

}  // namespace weir::timeline
