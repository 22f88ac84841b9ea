#pragma once

// Measures traces against subjects.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/breakdown.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/least_capacity.hpp"

namespace weir::replay {

/// A named subject to replay traces against.
struct Candidate {
  std::string name;
  MakeSubject make;
};

struct MeasureOptions {
  Bytes capacity;        ///< of the device
  bool search = true;    ///< whether to search the least capacity
  unsigned timings = 5;  ///< number of timed replays, of which the fastest counts; 0: none
  unsigned threads = 2;  ///< for everything that is not timed
};

struct Measured {
  std::string subject;
  Figures figures;                     ///< with the whole capacity
  std::optional<LeastCapacity> least;  ///< if it was searched and found
  std::optional<Figures> at_least;     ///< a replay with that capacity
  double ns_per_operation = 0;         ///< zero if not timed
  std::optional<Breakdown> breakdown;  ///< from a separate replay, if requested
};

/// The results of one trace, in the order of the candidates.
struct TraceResults {
  const Trace* trace = nullptr;
  Bytes peak_requested;  ///< of the trace alone
  std::vector<Measured> measured;
};

/// Reports progress: `done` of `all` parts, and the part that was completed last.
using Progressed = std::function<void(std::size_t done, std::size_t all, const std::string& what)>;

/// Measures every trace against every candidate. Timed replays run last and alone.
[[nodiscard]] std::vector<TraceResults> measure_all(std::span<const Trace> traces,
                                                    std::span<const Candidate> candidates,
                                                    const MeasureOptions& options,
                                                    const Progressed& progressed = {});

}  // namespace weir::replay
