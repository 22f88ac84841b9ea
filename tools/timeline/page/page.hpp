#pragma once

// A timeline as one HTML page that needs nothing else: no server, no network, no other file.

#include <cstddef>
#include <string>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// How a page is made.
struct PageOptions {
  std::string title = "Weir timeline";            ///< shown on top, and by the browser
  std::size_t max_bytes = std::size_t{3} << 20U;  ///< of the page; less detail is kept if needed
};

/// Returns the whole page, in UTF-8. Texts of the timeline may be anything: the page shows them as
/// text. A page is larger than `max_bytes` only when its least detail is. Thread-safe.
[[nodiscard]] std::string make_page(const Timeline& timeline, const PageOptions& options = {});

}  // namespace weir::timeline
