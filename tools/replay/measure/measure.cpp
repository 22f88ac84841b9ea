#include "tools/replay/measure/measure.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace weir::replay {
namespace {

/// Calls `work(i)` for every i below `count` on up to `threads` threads. Once all have ended,
/// rethrows the first exception.
void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < std::min<std::size_t>(threads, count); ++i) {
      helpers.emplace_back(run);
    }
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

void search_least(const Trace& trace, const Candidate& candidate, Bytes peak, Bytes most,
                  Measured& measured) {
  measured.least =
      least_capacity({.low = peak,
                      .high = measured.figures.peak_reserved,
                      .most = most,
                      .step = search_step(peak)},
                     [&](Bytes capacity) { return completes(trace, *candidate.make(capacity)); });
  if (measured.least) {
    measured.at_least = replay(trace, *candidate.make(measured.least->capacity));
  }
}

}  // namespace

std::optional<LeastCapacity> least_capacity(const CapacitySearch& search,
                                            const std::function<bool(Bytes)>& completes) {
  LeastCapacity least;
  const auto tried = [&](Bytes capacity) {
    ++least.tries;
    if (completes(capacity)) {
      least.capacity = capacity;
      return true;
    }
    least.failed = capacity;
    return false;
  };

  if (search.low > search.most) return std::nullopt;
  if (tried(search.low)) return least;
  Bytes high = std::clamp(search.high, search.low, search.most);
  while (high == search.low || !tried(high)) {
    if (high == search.most) return std::nullopt;
    high = minus_or_zero(search.most, high) > high ? high * 2 : search.most;
  }
  while (least.capacity - least.failed > search.step) {
    (void)tried({least.failed.count + (least.capacity - least.failed).count / 2});
  }
  return least;
}

std::vector<TraceResults> measure_all(std::span<const Trace> traces,
                                      std::span<const Candidate> candidates,
                                      const MeasureOptions& options, const Progressed& progressed) {
  std::vector<TraceResults> results(traces.size());
  for (std::size_t t = 0; t < traces.size(); ++t) {
    results[t].trace = &traces[t];
    results[t].peak_requested = peak_requested(traces[t]);
    results[t].measured.resize(candidates.size());
  }
  const std::size_t pairs = traces.size() * candidates.size();
  const std::size_t all = pairs * (1 + options.timings);
  std::mutex mutex;
  std::size_t done = 0;
  const auto tell = [&](const Trace& trace, const Candidate& candidate) {
    const std::lock_guard lock(mutex);
    ++done;
    if (progressed) progressed(done, all, trace.name + ": " + candidate.name);
  };

  for_each_index(pairs, options.threads, [&](std::size_t i) {
    const Trace& trace = traces[i / candidates.size()];
    const Candidate& candidate = candidates[i % candidates.size()];
    TraceResults& result = results[i / candidates.size()];
    Measured& measured = result.measured[i % candidates.size()];
    measured.subject = candidate.name;
    measured.figures = replay(trace, *candidate.make(options.capacity));
    if (options.search) {
      search_least(trace, candidate, result.peak_requested, options.capacity, measured);
    }
    tell(trace, candidate);
  });
  // One timing of every pair, then the next round, so that other load on the machine affects all
  // pairs alike.
  for (std::size_t i = 0; i < pairs * options.timings; ++i) {
    const std::size_t pair = i % pairs;
    const Trace& trace = traces[pair / candidates.size()];
    const Candidate& candidate = candidates[pair % candidates.size()];
    double& quickest =
        results[pair / candidates.size()].measured[pair % candidates.size()].ns_per_operation;
    const double ns = time_replay(trace, *candidate.make(options.capacity));
    quickest = i < pairs ? ns : std::min(quickest, ns);
    tell(trace, candidate);
  }
  return results;
}

}  // namespace weir::replay
