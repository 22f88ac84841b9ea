#pragma once

// Writes Chrome trace JSON, which Perfetto, chrome://tracing and read_chrome open. The schema is in
// docs/timeline-format.md.

#include <memory>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// A writer of a plain array with one event a line. A file that is cut anywhere still opens. Every
/// field of every record is in it; see read_chrome. A slice that ends before it begins gets no
/// length, and a moment only its `begin`. Names may be any bytes: those that are not UTF-8 become
/// U+FFFD. May begin several processes, one after the other; their times count from one zero.
[[nodiscard]] std::unique_ptr<Writer> make_chrome_writer(ByteSink& sink);

}  // namespace weir::timeline
