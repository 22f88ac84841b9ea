#include "tools/timeline/analysis/batches.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace weir::timeline {
namespace {

constexpr std::array kAllocationWaits{TimelineKind::kPoolWait, TimelineKind::kMemoryWait};

std::size_t reason_of(const TimelineRecord& stall) {
  return stall.detail < kStallReasons ? stall.detail : 0;
}
void add(Waits& waits, const TimelineRecord& record) {
  ++waits.count;
  waits.total = add_capped(waits.total, span_of(record).length());
}

/// Returns a function that returns the first batch that the stalled thread begins after the stall;
/// 0: none.
auto finder_of_next_batch(const Index& index) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> begun;  // admissions, by thread
  for (const std::uint32_t place : index.of(TimelineKind::kAdmit)) {
    const TimelineRecord& record = index.record(place);
    if (admission_of(record) != TimelineAdmission::kBefore) begun[record.thread].push_back(place);
  }
  return [&index, begun = std::move(begun)](const TimelineRecord& stall) -> std::uint32_t {
    const auto places = begun.find(stall.thread);
    if (places == begun.end()) return 0;
    const auto next =
        std::ranges::lower_bound(places->second, span_of(stall).end, {},
                                 [&](std::uint32_t place) { return index.record(place).begin; });
    return next == places->second.end() ? 0 : index.record(*next).batch;
  };
}

}  // namespace

std::vector<StalledBatch> stalled_batches(const Index& index) {
  std::map<std::uint32_t, StalledBatch> batches;
  const auto next_of_thread = finder_of_next_batch(index);
  const auto add = [&](std::uint32_t number, const TimelineRecord& wait) {
    if (number == 0) return;
    StalledBatch& batch = batches[number];
    ++batch.stalls;
    batch.stalled = add_capped(batch.stalled, span_of(wait).length());
  };
  for (const std::uint32_t place : index.of(TimelineKind::kStall)) {
    const TimelineRecord& stall = index.record(place);
    add(stall.batch != 0 ? stall.batch : next_of_thread(stall), stall);
  }
  for (const TimelineKind kind : kAllocationWaits) {
    for (const std::uint32_t place : index.of(kind)) {
      add(index.record(place).batch, index.record(place));
    }
  }
  for (const std::uint32_t place : index.of(TimelineKind::kClose)) {
    const auto closed = batches.find(index.record(place).batch);
    if (closed != batches.end()) closed->second.peak = index.record(place).bytes;
  }
  std::vector<StalledBatch> all;
  for (auto& [number, batch] : batches) {
    batch.number = number;
    batch.kind = index.kind_of_batch(number);
    all.push_back(batch);
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &StalledBatch::stalled);
  return all;
}

Waits StallFigures::stalls() const noexcept {
  Waits sum;
  for (const Waits& waits : admission) {
    sum.count += waits.count;
    sum.total = add_capped(sum.total, waits.total);
  }
  return sum;
}

StallFigures stall_figures(const Index& index) {
  StallFigures figures;
  for (const std::uint32_t place : index.of(TimelineKind::kStall))
    add(figures.admission.at(reason_of(index.record(place))), index.record(place));
  Waits& budget = figures.admission.at(static_cast<std::size_t>(TimelineStall::kBudget));
  for (const TimelineKind kind : kAllocationWaits) {
    for (const std::uint32_t place : index.of(kind)) add(budget, index.record(place));
  }
  for (const std::uint32_t place : index.of(TimelineKind::kPace))
    add(figures.pace, index.record(place));
  figures.failures = index.of(TimelineKind::kFailure).size();
  return figures;
}

}  // namespace weir::timeline
