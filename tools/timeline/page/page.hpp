#pragma once

// Makes a self-contained HTML page of a timeline, which needs no server, network or other file.

#include <cstddef>
#include <string>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Options of a page.
struct PageOptions {
  std::string title{};  ///< shown at the top and by the browser; empty: the programs' names
  std::size_t max_bytes = std::size_t{3} << 20U;  ///< size limit of the page; reduces the detail if
                                                  ///< needed
};

/// Returns the whole page, in UTF-8. Texts of the timeline may contain anything: the page shows
/// them as text. A page exceeds `max_bytes` only if its least detail does. Thread-safe.
[[nodiscard]] std::string make_page(const Timeline& timeline, const PageOptions& options = {});

}  // namespace weir::timeline
