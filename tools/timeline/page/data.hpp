#pragma once

// Makes a page's data as JSON, which page.js reads.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/page/memory.hpp"

namespace weir::timeline {

/// How much detail a page keeps of each process.
struct Detail {
  MemoryDetail memory;
  std::uint32_t row_columns = 8192;
  std::size_t rows = 24;
};

/// Returns all data of a timeline as at most `max_bytes` of JSON, or the least possible if that is
/// more. Names are not escaped for HTML: see escape_json.
[[nodiscard]] std::string page_data(const Timeline& timeline, std::size_t max_bytes,
                                    const Detail& detail = {});

/// Escapes every character that could end a script element or a line in it.
[[nodiscard]] std::string escape_json(const std::string& json);

// Packs tables of whole numbers as short texts, for a self-contained page.

/// RFC 4648, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// Packs columns of equal length. Each column becomes the differences of neighbours, zigzag-encoded
/// as LEB128. All columns together are compressed by zlib and encoded in base64. `unpack` in
/// page.js reads them.
[[nodiscard]] std::string pack(std::span<const std::vector<std::int64_t>> columns);

/// The fixed parts of a page. embed.cmake generates them from the files of this folder and from the
/// plotting library's package.
struct Asset {
  std::string_view text;
  std::string_view sha256;  ///< of the text, in hexadecimal
};
extern const Asset kPageHtml;  ///< with placeholders such as `<!--style-->`
extern const Asset kPageCss;
extern const Asset kPageScript;
extern const Asset kPlotScript;  ///< dygraphs

}  // namespace weir::timeline
