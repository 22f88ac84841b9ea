#pragma once

// Measures traces against subjects, and searches the least capacity at which something completes.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/replay/measure/breakdown.hpp"
#include "tools/replay/measure/engine.hpp"

namespace weir::replay {

struct LeastCapacity {
  Bytes capacity;      ///< the smallest capacity that was tried and completed
  Bytes failed;        ///< the largest smaller capacity that was tried and failed; zero if none
  unsigned tries = 0;  ///< in all

  friend bool operator==(const LeastCapacity&, const LeastCapacity&) = default;
};

struct CapacitySearch {
  Bytes low;   ///< the lower bound: the peak of requested bytes
  Bytes high;  ///< where the search begins; doubled until it completes
  Bytes most;  ///< the upper bound
  Bytes step;  ///< ends the search once `capacity` and `failed` are this close; above zero
};

/// Searches by bisection. The search assumes that what completes in one capacity also completes in
/// a larger one. No allocator promises that: the reported capacity did complete, but an untried
/// smaller one might, too. Returns nothing if even `most` fails.
[[nodiscard]] std::optional<LeastCapacity> least_capacity(
    const CapacitySearch& search, const std::function<bool(Bytes)>& completes);

/// The resolution of the search for a trace with this peak: a thousandth, at least one byte.
[[nodiscard]] constexpr Bytes search_step(Bytes peak) noexcept {
  return {peak.count / 1000 > 0 ? peak.count / 1000 : 1};
}

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
