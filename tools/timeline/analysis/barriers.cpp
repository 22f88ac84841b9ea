#include "tools/timeline/analysis/barriers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/timeline/analysis/idle.hpp"

namespace weir::timeline {
namespace {

/// A device's idle time, for queries about any span.
class IdleTime {
 public:
  IdleTime(const Index& index, DeviceKey device)
      : device_(device), gaps_(idle_spans(index, device)) {
    std::uint64_t sum = 0;
    for (const Span& gap : gaps_) {
      before_.push_back(sum);
      sum += gap.length();
    }
  }
  [[nodiscard]] DeviceKey device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t in(Span span) const {
    return span.length() == 0 ? 0 : until(span.end) - until(span.begin);
  }
  /// Returns the end of the gap that contains `at`, or `at` if the device works then.
  [[nodiscard]] std::uint64_t next_work(std::uint64_t at) const {
    const auto behind = std::ranges::upper_bound(gaps_, at, {}, &Span::begin);
    if (behind == gaps_.begin()) return at;
    return std::max(at, std::prev(behind)->end);
  }

 private:
  [[nodiscard]] std::uint64_t until(std::uint64_t at) const {
    const auto behind = std::ranges::upper_bound(gaps_, at, {}, &Span::begin);
    if (behind == gaps_.begin()) return 0;
    const auto place = static_cast<std::size_t>(behind - gaps_.begin()) - 1;
    return before_[place] + common(gaps_[place], {0, at}).length();
  }

  DeviceKey device_;
  std::vector<Span> gaps_;
  std::vector<std::uint64_t> before_;  ///< total idle time before each gap
};

std::vector<IdleTime> idle_times(const Index& index) {
  std::vector<IdleTime> times;
  for (const StreamInfo& stream : index.streams()) {  // by device
    if (times.empty() || times.back().device() != stream.device)
      times.emplace_back(index, stream.device);
  }
  return times;
}

/// Returns whether a wait is for this device. A wait that names no existing device is for all.
bool waits_for(const std::vector<IdleTime>& times, const TimelineRecord& wait, DeviceKey device) {
  const DeviceKey own = device_of(wait);
  if (own == device) return true;
  return std::ranges::none_of(times, [own](const IdleTime& time) { return time.device() == own; });
}

/// Returns the program's waits for the device, by their end. Drops a profiler's wait inside a call
/// of the program that has its own record.
std::vector<std::uint32_t> waits_by_end(const Index& index) {
  std::vector<std::uint32_t> waits;
  std::map<std::uint32_t, std::uint64_t> told_until;  // by thread: end of the last such call
  std::vector<std::uint32_t> all;
  for (const TimelineKind kind : {TimelineKind::kBarrier, TimelineKind::kSync}) {
    for (const std::uint32_t place : index.of(kind)) all.push_back(place);
  }
  std::ranges::stable_sort(all, {}, [&](std::uint32_t place) { return index.record(place).begin; });
  for (const std::uint32_t place : all) {
    const TimelineRecord& wait = index.record(place);
    std::uint64_t& until = told_until[wait.thread];
    if (wait.kind == TimelineKind::kSync && span_of(wait).end <= until) continue;
    if (wait.kind == TimelineKind::kBarrier) until = std::max(until, span_of(wait).end);
    waits.push_back(place);
  }
  std::ranges::stable_sort(waits, {},
                           [&](std::uint32_t place) { return span_of(index.record(place)).end; });
  return waits;
}

}  // namespace

std::vector<BarrierSite> barriers(const Index& index) {
  const std::vector<std::uint32_t> waits = waits_by_end(index);
  if (waits.empty()) return {};
  const std::vector<IdleTime> times = idle_times(index);
  std::map<std::tuple<std::uint32_t, std::uint32_t>, BarrierSite> sites;
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const TimelineRecord& wait = index.record(waits[i]);
    const Span span = span_of(wait);
    const std::uint64_t next_end =
        i + 1 < waits.size() ? span_of(index.record(waits[i + 1])).end : UINT64_MAX;
    BarrierSite& site = sites[{wait.site, wait.name}];
    ++site.count;
    site.waited = add_capped(site.waited, span.length());
    site.longest = std::max(site.longest, span.length());
    for (const IdleTime& time : times) {
      if (!waits_for(times, wait, time.device())) continue;
      site.idle_in = add_capped(site.idle_in, time.in(span));
      const Span after{span.end, std::min(time.next_work(span.end), next_end)};
      site.idle_after = add_capped(site.idle_after, time.in(after));
    }
  }
  std::vector<BarrierSite> ranked;
  for (auto& [key, site] : sites) {
    const std::string_view place = index.process().name(std::get<0>(key));
    const std::string_view call = index.process().name(std::get<1>(key));
    site.site = place.empty() ? "unknown place" : place;
    site.call = call.empty() ? "wait" : call;
    ranked.push_back(std::move(site));
  }
  std::ranges::stable_sort(ranked, [](const BarrierSite& a, const BarrierSite& b) {
    return std::tuple(b.idle_after, b.waited, a.site) < std::tuple(a.idle_after, a.waited, b.site);
  });
  return ranked;
}

}  // namespace weir::timeline
