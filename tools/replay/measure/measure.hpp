#pragma once

// Everything that is measured of one trace and one subject.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/breakdown.hpp"
#include "tools/replay/measure/engine.hpp"
#include "tools/replay/measure/least_capacity.hpp"

namespace weir::replay {

/// What a trace is replayed against, by a name.
struct Candidate {
  std::string name;
  MakeSubject make;
};

struct MeasureOptions {
  Bytes capacity;        ///< of the device
  bool search = true;    ///< for the least capacity
  unsigned timings = 5;  ///< replays that are timed, of which the quickest counts; 0: none
  unsigned threads = 2;  ///< for what is not timed
};

struct Measured {
  std::string subject;
  Figures figures;                     ///< with the whole capacity
  std::optional<LeastCapacity> least;  ///< where it was searched, and found
  std::optional<Figures> at_least;     ///< a replay with that capacity
  double ns_per_operation = 0;         ///< zero where it was not timed
  std::optional<Breakdown> breakdown;  ///< where it was asked for, in a replay of its own
};

/// One trace and what came of it, in the order of the candidates.
struct TraceResults {
  const Trace* trace = nullptr;
  Bytes peak_requested;  ///< of the trace alone
  std::vector<Measured> measured;
};

/// Tells how far it has come: `done` of `all` parts, and what was done last.
using Progressed = std::function<void(std::size_t done, std::size_t all, const std::string& what)>;

/// Every trace against every candidate. What is timed runs alone, after all else.
[[nodiscard]] std::vector<TraceResults> measure_all(std::span<const Trace> traces,
                                                    std::span<const Candidate> candidates,
                                                    const MeasureOptions& options,
                                                    const Progressed& progressed = {});

}  // namespace weir::replay
