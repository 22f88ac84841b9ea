#pragma once

// What a page knows, as JSON: page.js reads it.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/timeline/model/timeline.hpp"
#include "tools/timeline/page/memory.hpp"

namespace weir::timeline {

/// How much a page keeps of each process.
struct Detail {
  MemoryDetail memory;
  std::uint32_t lane_columns = 8192;
  std::size_t lanes = 24;
};

/// Everything about a timeline, in `max_bytes` of JSON or as little more as can be. Names are in it
/// as they are: escape_json makes them safe inside a page.
[[nodiscard]] std::string page_data(const Timeline& timeline, std::size_t max_bytes,
                                    const Detail& detail = {});

/// The same JSON with every character escaped that could end a script element or a line of one.
[[nodiscard]] std::string escape_json(const std::string& json);

}  // namespace weir::timeline
