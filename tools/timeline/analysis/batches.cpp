#include "tools/timeline/analysis/batches.hpp"

#include <algorithm>
#include <map>

namespace weir::timeline {
namespace {

std::size_t reason_of(const TimelineRecord& stall) {
  return stall.detail < kStallReasons ? stall.detail : 0;
}
void add(Waits& waits, const TimelineRecord& record) {
  ++waits.count;
  waits.total = add_capped(waits.total, span_of(record).length());
}

/// The batches of a process, created when their numbers first appear.
class Batches {
 public:
  explicit Batches(const Index& index) : index_(index) {}

  std::vector<BatchFigures> run() {
    for (const std::uint32_t place : index_.of(TimelineKind::kAdmit)) begin(index_.record(place));
    for (const std::uint32_t place : index_.of(TimelineKind::kClose)) close(index_.record(place));
    for (const std::uint32_t place : index_.of(TimelineKind::kSettle)) {
      const TimelineRecord& record = index_.record(place);
      if (record.batch != 0) of(record).settled = record.begin;
    }
    for (const std::uint32_t place : index_.of(TimelineKind::kStall)) stall(index_.record(place));
    for (const std::uint32_t place : index_.of(TimelineKind::kSubmit)) {
      if (index_.record(place).batch != 0) ++of(index_.record(place)).operations;
    }
    for (const StreamInfo& stream : index_.streams()) {
      for (const std::uint32_t place : stream.records) {
        const TimelineRecord& record = index_.record(place);
        if (record.batch == 0) continue;
        BatchFigures& batch = of(record);
        batch.busy = add_capped(batch.busy, span_of(record).length());
      }
    }
    std::vector<BatchFigures> all;
    all.reserve(batches_.size());
    for (const auto& [number, batch] : batches_) all.push_back(batch);
    std::ranges::sort(all, {}, &BatchFigures::number);
    return all;
  }

 private:
  BatchFigures& of(const TimelineRecord& record) {
    BatchFigures& batch = batches_[record.batch];
    batch.number = record.batch;
    if (batch.kind == 0) batch.kind = index_.kind_of_batch(record.batch);
    return batch;
  }
  void begin(const TimelineRecord& record) {
    if (record.batch == 0) return;
    BatchFigures& batch = of(record);
    batch.begun = record.begin;
    batch.site = record.site;
    batch.thread = record.thread;
    batch.forced = admission_of(record) == TimelineAdmission::kForced;
    batch.estimate = record.bytes;
  }
  void close(const TimelineRecord& record) {
    if (record.batch == 0) return;
    BatchFigures& batch = of(record);
    batch.closed = record.begin;
    batch.peak = record.bytes;
  }
  /// Returns the first batch that the stalled thread begins after the stall; 0: none.
  std::uint32_t next_of_thread(const TimelineRecord& stall) {
    if (begun_.empty()) {
      for (const std::uint32_t place : index_.of(TimelineKind::kAdmit)) {
        const TimelineRecord& record = index_.record(place);
        if (admission_of(record) == TimelineAdmission::kBefore) continue;
        begun_[record.thread].push_back(place);
      }
    }
    const auto& places = begun_[stall.thread];
    const auto next =
        std::ranges::lower_bound(places, span_of(stall).end, {},
                                 [&](std::uint32_t place) { return index_.record(place).begin; });
    return next == places.end() ? 0 : index_.record(*next).batch;
  }
  void stall(const TimelineRecord& record) {
    const std::uint32_t number = record.batch != 0 ? record.batch : next_of_thread(record);
    if (number == 0) return;
    TimelineRecord owned = record;
    owned.batch = number;
    BatchFigures& batch = of(owned);
    ++batch.stalls;
    std::uint64_t& time = batch.stalled.at(reason_of(record));
    time = add_capped(time, span_of(record).length());
  }

  const Index& index_;
  std::map<std::uint32_t, BatchFigures> batches_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> begun_;
};

}  // namespace

std::uint64_t BatchFigures::stalled_in_all() const noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t time : stalled) sum = add_capped(sum, time);
  return sum;
}

std::vector<BatchFigures> batches(const Index& index) { return Batches(index).run(); }

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
  for (const TimelineKind kind : {TimelineKind::kPoolWait, TimelineKind::kMemoryWait}) {
    for (const std::uint32_t place : index.of(kind)) add(figures.memory, index.record(place));
  }
  for (const std::uint32_t place : index.of(TimelineKind::kPace))
    add(figures.pace, index.record(place));
  figures.failures = index.of(TimelineKind::kFailure).size();
  return figures;
}

}  // namespace weir::timeline
