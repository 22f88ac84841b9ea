#pragma once

// Reads traces from files. docs/replay.md describes the formats.

#include <string>
#include <vector>

#include "tools/replay/read/csv.hpp"
#include "tools/replay/read/source.hpp"
#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// Reads the traces in the file at `path` and detects the format from its contents. Throws
/// UsageError of one line, with file, place and reason, if it cannot read the file. Reads a
/// truncated file up to the cut and sets Trace::cut.
[[nodiscard]] std::vector<Trace> read_traces(const std::string& path);
/// Reads traces from unpacked bytes.
[[nodiscard]] std::vector<Trace> read_traces(const Source& source);

// One function per format, called once the format is recognised.

/// Reads our allocation log: one trace for each pool with allocations.
[[nodiscard]] std::vector<Trace> read_log_traces(const Source& source);

/// Returns whether the header is that of RMM's log: columns `Action` and `Pointer`.
[[nodiscard]] bool is_rmm_log(const Csv& csv);
[[nodiscard]] Trace read_rmm_log(const std::string& name, Csv& csv);

/// Returns whether the header is one of lifetimes: `buffer,start,end,size` or
/// `id,lower,upper,size`, in any order, and optionally `stream`.
[[nodiscard]] bool is_lifetimes(const Csv& csv);
[[nodiscard]] Trace read_lifetimes(const std::string& name, Csv& csv);

}  // namespace weir::replay
