#pragma once

// Runs Perfetto's real trace processor on files.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::testing {

/// A trace and its queries.
struct Load {
  std::string trace;  ///< the bytes of a file of any format that Perfetto reads
  std::vector<std::string> queries;
};

/// The results of queries.
struct Queried {
  std::string left_out;  ///< why the trace processor is not available; empty if it ran
  nlohmann::json rows;   ///< for each trace, an array for each query, of objects
};

/// Loads the traces in turn and runs the queries of each. A trace that does not load fails the
/// test.
[[nodiscard]] Queried query_traces(const std::vector<Load>& loads);

/// All statistics of errors and lost data that are not zero.
inline constexpr const char* kTroubles =
    "SELECT name, idx, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

}  // namespace weir::testing
