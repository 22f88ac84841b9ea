#pragma once

// Makes a page's data as JSON, which page.js reads.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

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

}  // namespace weir::timeline
