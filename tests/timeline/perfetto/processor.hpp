#pragma once

// Perfetto's real trace processor, run on files.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace weir::testing {

/// A trace, and what is asked of it.
struct Load {
  std::string trace;  ///< the bytes of a file of any format that Perfetto reads
  std::vector<std::string> queries;
};

/// What queries of traces found.
struct Queried {
  std::string left_out;  ///< why the trace processor cannot be had here; empty where it ran
  nlohmann::json rows;   ///< for each trace, an array for each query, of objects
};

/// Loads the traces one after the other and runs the queries of each. A trace that does not load is
/// a failure of the test.
[[nodiscard]] Queried query_traces(const std::vector<Load>& loads);

/// All statistics of errors and of lost data that are not zero.
inline constexpr const char* kTroubles =
    "SELECT name, idx, value FROM stats WHERE severity IN ('error', 'data_loss') AND value > 0";

}  // namespace weir::testing
