#include "tools/timeline/live/rates.hpp"

#include <algorithm>

namespace weir::timeline {
namespace {

std::optional<double> per(std::uint64_t from, std::uint64_t to, double time) {
  if (to < from) return std::nullopt;
  return static_cast<double>(to - from) / time;
}

}  // namespace

LiveRates rates_of(std::span<const LiveSample> samples, std::chrono::nanoseconds window) {
  if (samples.empty()) return {};
  const LiveSample& last = samples.back();
  const auto longest = static_cast<std::uint64_t>(window.count());
  std::size_t at = samples.size() - 1;
  while (at > 0 && samples[at - 1].time_ns < samples[at].time_ns &&
         last.time_ns - samples[at - 1].time_ns <= longest) {
    --at;
  }
  const LiveSample& first = samples[at];
  if (last.time_ns <= first.time_ns) return {};
  const auto ns = static_cast<double>(last.time_ns - first.time_ns);
  constexpr double kSecond = 1e9;
  LiveRates rates{.batches = per(first.settled, last.settled, ns / kSecond),
                  .stalls = per(first.stalls, last.stalls, ns / kSecond),
                  .stalled = per(first.stalled_ns, last.stalled_ns, ns),
                  .idle = std::nullopt};
  if (first.knows_busy != 0 && last.knows_busy != 0) {
    if (const auto busy = per(first.busy_ns, last.busy_ns, ns)) {
      rates.idle = std::clamp(1.0 - *busy, 0.0, 1.0);
    }
  }
  return rates;
}

}  // namespace weir::timeline
