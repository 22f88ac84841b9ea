#include "tools/timeline/live/rates.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::timeline {
namespace {

using Samples = std::span<const LiveSample>;
using Counter = std::uint64_t LiveSample::*;

/// Returns the last samples with ascending times, none older than `window`. `samples` must not be
/// empty.
Samples within(Samples samples, std::chrono::nanoseconds window) {
  const auto longest = static_cast<std::uint64_t>(window.count());
  const std::uint64_t last = samples.back().time_ns;
  std::size_t at = samples.size() - 1;
  while (at > 0 && samples[at - 1].time_ns < samples[at].time_ns &&
         last - samples[at - 1].time_ns <= longest) {
    --at;
  }
  return samples.subspan(at);
}

/// Returns the growth of `counter` per `unit` nanoseconds since it last went back: its earlier
/// counts belong to a pool, scheduler or device that ended.
std::optional<double> growth(Samples samples, Counter counter, double unit) {
  if (samples.empty()) return std::nullopt;
  std::size_t at = samples.size() - 1;
  while (at > 0 && samples[at - 1].*counter <= samples[at].*counter) --at;
  const LiveSample& first = samples[at];
  const LiveSample& last = samples.back();
  if (first.time_ns == last.time_ns) return std::nullopt;
  const auto time = static_cast<double>(last.time_ns - first.time_ns);
  return static_cast<double>(last.*counter - first.*counter) * unit / time;
}

/// Starts where the device first reports its busy time; the first samples may be older.
std::optional<double> idle_share(Samples samples) {
  std::size_t at = samples.size();
  while (at > 0 && samples[at - 1].knows_busy != 0) --at;
  const auto busy = growth(samples.subspan(at), &LiveSample::busy_ns, 1);
  if (!busy) return std::nullopt;
  return std::clamp(1.0 - *busy, 0.0, 1.0);
}

}  // namespace

LiveRates rates_of(std::span<const LiveSample> samples, std::chrono::nanoseconds window) {
  if (samples.empty()) return {};
  constexpr double kSecond = 1e9;
  const Samples recent = within(samples, window);
  return {.batches = growth(recent, &LiveSample::settled, kSecond),
          .stalls = growth(recent, &LiveSample::stalls, kSecond),
          .stalled = growth(recent, &LiveSample::stalled_ns, 1),
          .idle = idle_share(recent)};
}

}  // namespace weir::timeline
