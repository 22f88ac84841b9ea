#include "tools/timeline/analysis/hidden_copies.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tools/timeline/analysis/tasks.hpp"

namespace weir::timeline {
namespace {

using Spans = std::vector<Span>;

/// Returns the same times as disjoint spans in order.
Spans disjoint(Spans spans) {
  std::ranges::sort(spans, {}, &Span::begin);
  Spans joined;
  for (const Span& span : spans) add_in_order(joined, span);
  return joined;
}

/// Returns the time that is in both. Each is disjoint and in order.
std::uint64_t in_both(const Spans& a, const Spans& b) {
  std::uint64_t time = 0;
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    time += common(*x, *y).length();
    if (x->end < y->end) {
      ++x;
    } else {
      ++y;
    }
  }
  return time;
}

}  // namespace

HiddenCopies hidden_copies(const Index& index, DeviceKey device, Span during) {
  Spans copies;
  Spans computations;
  for (const StreamInfo& stream : index.streams()) {
    if (stream.device != device) continue;
    for (const std::uint32_t place : stream.records) {
      const TimelineRecord& work = index.record(place);
      const Span span = common(span_of(work), during);
      const auto direction = copy_direction(stream, work);
      if (direction == TimelineCopy::kToDevice) copies.push_back(span);
      if (!direction && work.kind != TimelineKind::kSet) computations.push_back(span);
    }
  }
  copies = disjoint(std::move(copies));
  return {in_both(copies, copies), in_both(copies, disjoint(std::move(computations)))};
}

}  // namespace weir::timeline
