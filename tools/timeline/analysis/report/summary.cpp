#include "tools/timeline/analysis/report/summary.hpp"

#include <algorithm>

namespace weir::timeline {
namespace {

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string title(const ProcessInfo& info) {
  std::string text =
      (info.program.empty() ? "program" : info.program) + " (process " + std::to_string(info.pid);
  if (info.rank) text += ", rank " + std::to_string(*info.rank);
  return text + ")";
}

/// Returns whether anything existed before the recording began.
bool began_late(const Index& index) {
  if (!index.of(TimelineKind::kLive).empty()) return true;
  for (const PoolInfo& pool : index.pools()) {
    const TimelineRecord& first = index.record(pool.records.front());
    if (first.kind != TimelineKind::kPool ||
        add_capped(add_capped(first.allocated, first.awaiting), first.cached) != 0) {
      return true;
    }
  }
  return false;
}

void add_device(Summary& summary, const DeviceIdle& device) {
  summary.has_device = true;
  summary.device_time = add_capped(summary.device_time, device.recorded);
  summary.busy = add_capped(summary.busy, device.busy);
  summary.idle = add_capped(summary.idle, device.idle);
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    summary.idle_causes.at(i) = add_capped(summary.idle_causes.at(i), device.causes.at(i).total);
}

}  // namespace

double Summary::idle_share() const noexcept { return share_of(idle, device_time); }

double Summary::idle_share(IdleCause cause) const noexcept {
  return share_of(idle_causes.at(static_cast<std::size_t>(cause)), device_time);
}

Summary summarize(const Index& index, const SummaryParts& parts) {
  const Process& process = index.process();
  Summary summary{.process = title(process.info),
                  .events = process.records.size(),
                  .duration = index.recorded(index.span()),
                  .complete = process.complete,
                  .began_late = began_late(index),
                  .lost = index.lost(),
                  .dropped = index.unknown()};
  if (const PoolPeaks* pool = main_pool(parts.pools)) {
    summary.pool = pool->name;
    summary.peak = pool->peak_held;
    summary.peak_at = pool->peak_at;
    summary.budget = pool->peak_budget;
    summary.peak_batch = pool->peak_batch;
    summary.peak_reserved = pool->peak_reserved;
  }
  const auto begun = [&](std::uint32_t place) {
    return admission_of(index.record(place)) != TimelineAdmission::kBefore;
  };
  summary.batches =
      static_cast<std::uint64_t>(std::ranges::count_if(index.of(TimelineKind::kAdmit), begun));
  summary.stalls = stall_figures(index);
  summary.stalled_share = share_of(summary.stalls.stalls().total, summary.duration);
  summary.barriers = index.of(TimelineKind::kBarrier).size();
  for (const DeviceIdle& device : parts.devices) add_device(summary, device);
  return summary;
}

std::vector<std::string> notes(const Index& index) {
  constexpr std::size_t kMost = 20;
  std::vector<std::string> lines;
  const auto places = index.of(TimelineKind::kNote);
  for (const std::uint32_t place : places.first(std::min(places.size(), kMost)))
    lines.emplace_back(index.process().name(index.record(place).name));
  if (places.size() > kMost)
    lines.push_back("and " + std::to_string(places.size() - kMost) + " more such lines");
  return lines;
}

Summary summarize(const Index& index) {
  SummaryParts parts{.devices = idle_by_cause(index, {.most_gaps = 0})};
  for (const PoolInfo& pool : index.pools()) parts.pools.push_back(pool_peaks(index, pool));
  return summarize(index, parts);
}

}  // namespace weir::timeline
