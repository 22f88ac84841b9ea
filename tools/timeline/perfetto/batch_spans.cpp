#include "tools/timeline/perfetto/batch_spans.hpp"

#include <algorithm>

namespace weir::timeline {
namespace {

constexpr std::size_t kMostLanes = 256;

}  // namespace

void BatchSpans::begin(const TimelineRecord& record, Span span, std::vector<Change>& changes) {
  std::vector<Lane>& all = lanes(span);
  auto free = std::find_if(all.begin(), all.end(), [&](const Lane& lane) {
    return !lane.taken && lane.free_from <= record.begin;
  });
  if (free == all.end()) {
    if (all.size() == kMostLanes) return;
    free = all.insert(all.end(), Lane{});
  }
  free->taken = true;
  const auto lane = static_cast<std::uint32_t>(free - all.begin());
  begun_[record.batch] = {.span = span, .lane = lane, .time = record.begin};
  changes.push_back({.span = span, .begins = true, .lane = lane});
}

std::vector<BatchSpans::Change> BatchSpans::add(const TimelineRecord& record) {
  std::vector<Change> changes;
  if (const auto found = begun_.find(record.batch); found != begun_.end()) {
    const Begun begun = found->second;
    const bool next = record.kind == TimelineKind::kSettle ||
                      (record.kind == TimelineKind::kClose && begun.span == Span::kOpen);
    if (!next || record.begin < begun.time) return changes;
    lanes(begun.span)[begun.lane] = {.taken = false, .free_from = record.begin};
    begun_.erase(found);
    changes.push_back({.span = begun.span, .begins = false, .lane = begun.lane});
  }
  if (record.kind == TimelineKind::kAdmit) begin(record, Span::kOpen, changes);
  if (record.kind == TimelineKind::kClose) begin(record, Span::kQueued, changes);
  return changes;
}

}  // namespace weir::timeline
