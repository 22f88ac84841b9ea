#pragma once

// Writes Chrome trace JSON for Perfetto, chrome://tracing and read_chrome. docs/timeline-format.md
// has the schema.

#include <memory>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Returns a writer of a plain array with one event per line. A file truncated anywhere still
/// opens. It contains every field of every record; see read_chrome. A slice that ends before it
/// begins has no length; an instant has only its `begin`. Names may be any bytes; invalid UTF-8
/// becomes U+FFFD. May write several processes, one after another, whose times count from one zero.
[[nodiscard]] std::unique_ptr<Writer> make_chrome_writer(ByteSink& sink);

}  // namespace weir::timeline
