#include "tools/gpu_check/timeline_check/compare.hpp"

#include <algorithm>

namespace weir::gpu_check {

using timeline::Process;
namespace {

constexpr double kNsPerUs = 1e3;
constexpr double kNsPerMs = 1e6;
/// Two operations of one stream may seem to overlap by this much: a device's clock moves in steps.
constexpr std::uint64_t kOverlap = 1000;

bool is_of_kind(const TimelineRecord& record, StretchKind kind) {
  const auto copied = static_cast<TimelineCopy>(record.detail);
  switch (kind) {
    case StretchKind::kKernels:
      return record.kind == TimelineKind::kKernel;
    case StretchKind::kToDevice:
      return record.kind == TimelineKind::kCopy && copied == TimelineCopy::kToDevice;
    case StretchKind::kFromDevice:
      return record.kind == TimelineKind::kCopy && copied == TimelineCopy::kFromDevice;
    case StretchKind::kOnDevice:
      return record.kind == TimelineKind::kCopy && copied == TimelineCopy::kOnDevice;
  }
  return false;
}

/// The times of a stretch, counted from the recording's zero.
struct Window {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
Window window_of(const Stretch& stretch, const Process& process) {
  const std::uint64_t zero = process.info.monotonic_ns;
  return {stretch.begin_ns > zero ? stretch.begin_ns - zero : 0,
          stretch.end_ns > zero ? stretch.end_ns - zero : 0};
}

double outside_us(const TimelineRecord& record, const Window& window) {
  const std::uint64_t before = record.begin < window.begin ? window.begin - record.begin : 0;
  const std::uint64_t after = record.end > window.end ? record.end - window.end : 0;
  return static_cast<double>(std::max(before, after)) / kNsPerUs;
}

/// Collects the records of one stretch, which arrive in order of their begin.
class Gatherer {
 public:
  Gatherer(const Stretch& stretch, const Process& process)
      : window_(window_of(stretch, process)), found_{.launched = stretch} {}

  [[nodiscard]] bool has_batch_of(const TimelineRecord& record) const {
    return record.batch != 0 && record.batch == found_.launched.batch;
  }
  [[nodiscard]] bool has_time_of(const TimelineRecord& record) const {
    return record.begin >= window_.begin && record.end <= window_.end;
  }
  [[nodiscard]] bool has_kind_of(const TimelineRecord& record) const {
    return is_of_kind(record, found_.launched.kind);
  }
  void add(const TimelineRecord& record) {
    if (found_.recorded == 0) first_ = record.begin;
    found_.in_order = found_.in_order && record.begin + kOverlap >= last_ && record.id >= last_id_;
    last_ = std::max(last_, record.end);
    last_id_ = record.id;
    ++found_.recorded;
    if (has_batch_of(record)) ++found_.joined;
    found_.sum_ms += static_cast<double>(record.end - record.begin) / kNsPerMs;
    found_.span_ms = static_cast<double>(last_ - first_) / kNsPerMs;
    found_.outside_us = std::max(found_.outside_us, outside_us(record, window_));
  }
  [[nodiscard]] const RecordedStretch& found() const { return found_; }

 private:
  Window window_;
  RecordedStretch found_;
  std::uint64_t first_ = 0;
  std::uint64_t last_ = 0;
  std::uint64_t last_id_ = 0;
};

/// Returns the record's stretch, found by its batch or else by its time. Null if it belongs to
/// none.
Gatherer* gatherer_of(std::vector<Gatherer>& all, const TimelineRecord& record) {
  const auto find = [&](bool (Gatherer::*fits)(const TimelineRecord&) const) -> Gatherer* {
    const auto found = std::ranges::find_if(
        all, [&](const Gatherer& one) { return one.has_kind_of(record) && (one.*fits)(record); });
    return found == all.end() ? nullptr : &*found;
  };
  Gatherer* const by_batch = find(&Gatherer::has_batch_of);
  return by_batch != nullptr ? by_batch : find(&Gatherer::has_time_of);
}

}  // namespace

TimelineComparison compare(const timeline::Timeline& timeline,
                           const std::vector<Stretch>& launched) {
  TimelineComparison comparison;
  const Process none;
  const Process& process = timeline.processes.empty() ? none : timeline.processes.front();
  comparison.lost = process.lost;
  comparison.complete = process.complete;
  std::vector<Gatherer> all;
  all.reserve(launched.size());
  for (const Stretch& stretch : launched) all.emplace_back(stretch, process);
  for (const TimelineRecord& record : process.records) {
    if (record.kind != TimelineKind::kKernel && record.kind != TimelineKind::kCopy) continue;
    if (Gatherer* const of = gatherer_of(all, record)) {
      of->add(record);
    } else {
      ++comparison.strays;
    }
  }
  for (const Gatherer& one : all) comparison.stretches.push_back(one.found());
  return comparison;
}

ActivityCounts count_activity(const timeline::Timeline& timeline) {
  ActivityCounts counts;
  for (const Process& process : timeline.processes) {
    counts.lost += process.lost;
    counts.complete = counts.complete && process.complete;
    for (const TimelineRecord& record : process.records) {
      if (record.kind == TimelineKind::kKernel) ++counts.kernels;
      if (record.kind == TimelineKind::kCopy) ++counts.copies;
    }
  }
  counts.complete = counts.complete && !timeline.processes.empty();
  return counts;
}

}  // namespace weir::gpu_check
