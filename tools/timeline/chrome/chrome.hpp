#pragma once

// Reads Chrome trace JSON: our own files without loss, and memory and device events of other
// programs' files.

#include <memory>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads the timeline of a file, gzipped or not, whose events are an array or a member
/// `traceEvents`. Reads a truncated file up to its end; its processes are not complete. Skips
/// invalid events and counts them in a kNote record. Throws UsageError of one line, naming the
/// file, if it is another kind of file or exceeds `limits`.
[[nodiscard]] Timeline read_chrome(const std::string& path, const ReadLimits& limits = {});

// Writes Chrome trace JSON for Perfetto, chrome://tracing and read_chrome. docs/timeline-format.md
// has the schema.

/// Returns a writer of a plain array with one event per line. A file truncated anywhere still
/// opens. It contains every field of every record; see read_chrome. A slice that ends before it
/// begins has no length; an instant has only its `begin`. Names may be any bytes; invalid UTF-8
/// becomes U+FFFD. May write several processes, one after another, whose times count from one zero.
[[nodiscard]] std::unique_ptr<Writer> make_chrome_writer(ByteSink& sink);

}  // namespace weir::timeline

namespace weir::timeline::chrome {

// Recognises Chrome trace JSON by a file's first bytes.

/// Returns whether it is JSON of a trace, of any program.
[[nodiscard]] bool recognises(std::string_view front);
/// Returns whether it is a trace whose first events are ours.
[[nodiscard]] bool recognises_ours(std::string_view front);

}  // namespace weir::timeline::chrome
