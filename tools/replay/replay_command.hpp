#pragma once

// What `weir replay` and weir-peers do: replay traces of allocations against pools, and print what
// each costs.

#include <functional>
#include <vector>

#include "tools/program/command_line.hpp"
#include "tools/replay/measure/measure.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::replay {

/// Returns candidates besides the pools, on upstreams of that kind. Throws UsageError.
using MoreCandidates = std::function<std::vector<Candidate>(UpstreamKind kind)>;

/// Adds the flags to `line`, which must outlive the function that is returned: it does what they
/// say, once they are parsed, and returns the exit code.
[[nodiscard]] std::function<int()> add_replay(CommandLine& line, MoreCandidates more = {});

}  // namespace weir::replay
