#pragma once

// Reads `.pftrace` files of our writer.

#include <memory>
#include <string>
#include <string_view>

#include "tools/timeline/model/timeline.hpp"

namespace weir::timeline {

/// Reads the file at `path`. From a truncated file it reads the complete part, and the last process
/// is not complete. Throws UsageError of one line, with the file and the byte, if the file cannot
/// be read, is not our trace, is damaged, or exceeds `limits`.
[[nodiscard]] Timeline read_perfetto(const std::string& path, const ReadLimits& limits = {});
/// Reads from memory. `name` replaces the path in messages.
[[nodiscard]] Timeline read_perfetto_bytes(std::string_view bytes, const std::string& name,
                                           const ReadLimits& limits = {});

// Writes Perfetto's own format, for long runs: a third of the bytes of Chrome's JSON, and Perfetto
// opens it faster. It contains everything twice: as slices, arrows and counters for Perfetto, and
// as packed records for our reader, which Perfetto skips.

/// Writes `.pftrace` to `sink`, which must outlive the writer. A file truncated anywhere loses only
/// its last event. Perfetto shows allocations, frees and uses of blocks only through counters; the
/// packed records contain them.
[[nodiscard]] std::unique_ptr<Writer> make_perfetto_writer(ByteSink& sink);

}  // namespace weir::timeline

namespace weir::timeline::perfetto {

// Recognises Perfetto traces by a file's first bytes.

/// Returns whether it begins like a trace, of any program.
[[nodiscard]] bool recognises(std::string_view front);
/// Returns whether it is a trace whose first packet is ours.
[[nodiscard]] bool recognises_ours(std::string_view front);

}  // namespace weir::timeline::perfetto
