#pragma once

// Files that traces are read from. docs/replay.md has the formats.

#include <string>
#include <vector>

#include "tools/replay/read/csv.hpp"
#include "tools/replay/read/source.hpp"
#include "tools/replay/read/trace.hpp"

namespace weir::replay {

/// The traces in the file at `path`, whose format is told by its contents. UsageError of one line,
/// with the file, where in it and why, for what cannot be read; a file that was cut short is read
/// up to the cut, and Trace::cut says so.
[[nodiscard]] std::vector<Trace> read_traces(const std::string& path);
/// The same of bytes that are unpacked.
[[nodiscard]] std::vector<Trace> read_traces(const Source& source);

// One format each, called once it is recognised.

/// Of our own allocation log: a trace for each of its pools that allocated.
[[nodiscard]] std::vector<Trace> read_log_traces(const Source& source);

/// Whether the header is that of RMM's log: a column `Action` and a column `Pointer`.
[[nodiscard]] bool is_rmm_log(const Csv& csv);
[[nodiscard]] Trace read_rmm_log(const std::string& name, Csv& csv);

/// Whether the header is one of lifetimes: `buffer,start,end,size` or `id,lower,upper,size`, in any
/// order, and perhaps `stream`.
[[nodiscard]] bool is_lifetimes(const Csv& csv);
[[nodiscard]] Trace read_lifetimes(const std::string& name, Csv& csv);

}  // namespace weir::replay
