#include "tools/timeline/analysis/idle.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "tools/timeline/analysis/tasks.hpp"
#include "tools/timeline/analysis/thread_states.hpp"

namespace weir::timeline {
namespace {

using Devices = std::map<DeviceKey, std::vector<std::uint32_t>>;

/// Returns the works of each device on all of its streams, by begin.
Devices works_by_device(const Index& index) {
  Devices devices;
  for (const StreamInfo& stream : index.streams()) {
    auto& works = devices[stream.device];
    works.insert(works.end(), stream.records.begin(), stream.records.end());
  }
  for (auto& [device, works] : devices) {
    std::ranges::stable_sort(works, {},
                             [&](std::uint32_t place) { return index.record(place).begin; });
  }
  return devices;
}

/// Returns the span from the first work's begin to the last work's end.
Span span_of_works(const Index& index, std::span<const std::uint32_t> works) {
  if (works.empty()) return {};
  Span span{index.record(works.front()).begin, 0};
  for (const std::uint32_t place : works)
    span.end = std::max(span.end, span_of(index.record(place)).end);
  return span;
}

/// The works around a gap.
struct Neighbours {
  std::uint32_t before = Gap::kNone;  ///< the last to end before it
  std::uint32_t after = Gap::kNone;   ///< the first to begin after it
};

/// Calls `visit(Span, Neighbours)` for each recorded time without work. A gap that includes a stop
/// of the recording is split: only its last part has a work that ended it.
template <typename Visit>
void for_each_gap(const Index& index, std::span<const std::uint32_t> works, const Visit& visit) {
  std::uint64_t busy_until = 0;
  std::uint32_t last = Gap::kNone;
  for (const std::uint32_t place : works) {
    const Span work = span_of(index.record(place));
    if (last != Gap::kNone && work.begin > busy_until) {
      const Span gap{busy_until, work.begin};
      for (const Span& window : index.windows_in(gap)) {
        const Span part = common(gap, window);
        visit(part, Neighbours{part.begin == gap.begin ? last : Gap::kNone,
                               part.end == gap.end ? place : Gap::kNone});
      }
    }
    if (last == Gap::kNone || work.end >= busy_until) {
      busy_until = work.end;
      last = place;
    }
  }
}

/// Assigns causes to gaps.
class Causes {
 public:
  explicit Causes(const Index& index) : index_(index), submissions_(index), frontends_(index) {}

  Gap judge(Span span, Neighbours works) const {
    Gap gap{.span = span, .record = works.after};
    const TimelineRecord* submission = submission_of(works.after);
    const ThreadStates* thread = frontends_.of(thread_of(works.after, submission));
    GapFacts facts{.length = span.length(), .submission_known = submission != nullptr};
    Span asked{submitted_at(works.before, span.begin), span.end};
    if (submission != nullptr) {
      const std::uint64_t submitted = std::min(span_of(*submission).end, span.end);
      facts.after_submission = span.end - std::max(span.begin, submitted);
      asked.end = submitted;
    }
    ThreadStates::Doings doings;
    if (thread != nullptr) doings = thread->in(asked);
    facts.before_submission = doings.times;
    gap.cause = cause_of(facts);
    if (gap.cause == IdleCause::kBarrier) gap.site = doings.barrier_site;
    return gap;
  }

 private:
  [[nodiscard]] const TimelineRecord* submission_of(std::uint32_t work) const {
    return work == Gap::kNone ? nullptr : submissions_.of(index_.record(work));
  }
  /// Returns when the work before a gap was submitted; if unknown, the gap's begin.
  [[nodiscard]] std::uint64_t submitted_at(std::uint32_t work, std::uint64_t gap_begin) const {
    const TimelineRecord* submission = submission_of(work);
    return submission == nullptr ? gap_begin : std::min(span_of(*submission).end, gap_begin);
  }
  [[nodiscard]] std::uint32_t thread_of(std::uint32_t work,
                                        const TimelineRecord* submission) const {
    if (submission != nullptr) return submission->thread;
    return frontends_.thread_of_batch(work == Gap::kNone ? 0 : index_.record(work).batch);
  }

  const Index& index_;
  Submissions submissions_;
  FrontendStates frontends_;
};

bool longer(const Gap& a, const Gap& b) { return a.span.length() > b.span.length(); }

/// Keeps the longest gaps.
class LongestGaps {
 public:
  explicit LongestGaps(std::size_t most) : most_(most) {}
  void add(const Gap& gap) {
    if (most_ == 0) return;
    if (kept_.size() == most_) {
      if (!longer(gap, kept_.front())) return;
      std::ranges::pop_heap(kept_, longer);
      kept_.pop_back();
    }
    kept_.push_back(gap);
    std::ranges::push_heap(kept_, longer);
  }
  [[nodiscard]] std::vector<Gap> by_time() {
    std::ranges::sort(kept_, {}, [](const Gap& gap) { return gap.span.begin; });
    return std::move(kept_);
  }

 private:
  std::size_t most_;
  std::vector<Gap> kept_;
};

}  // namespace

std::vector<DeviceIdle> idle_by_cause(const Index& index, const IdleOptions& options) {
  const Devices devices = works_by_device(index);
  std::vector<DeviceIdle> all;
  if (devices.empty()) return all;
  const Causes causes(index);
  for (const auto& [device, works] : devices) {
    DeviceIdle idle{
        .device = device, .name = describe(index, device), .span = span_of_works(index, works)};
    idle.recorded = index.recorded(idle.span);
    LongestGaps longest(options.most_gaps);
    for_each_gap(index, works, [&](Span span, Neighbours around) {
      const Gap gap = causes.judge(span, around);
      IdleSum& sum = idle.causes.at(static_cast<std::size_t>(gap.cause));
      ++sum.count;
      sum.total += span.length();
      ++idle.gap_count;
      idle.idle += span.length();
      longest.add(gap);
    });
    idle.busy = idle.recorded - idle.idle;
    idle.gaps = longest.by_time();
    all.push_back(std::move(idle));
  }
  return all;
}

std::vector<Span> idle_spans(const Index& index, DeviceKey device) {
  const Devices devices = works_by_device(index);
  std::vector<Span> spans;
  const auto found = devices.find(device);
  if (found == devices.end()) return spans;
  for_each_gap(index, found->second, [&](Span span, Neighbours) { spans.push_back(span); });
  return spans;
}

std::vector<StreamBusy> stream_busy(const Index& index) {
  std::map<DeviceKey, Span> spans;
  for (const StreamInfo& stream : index.streams()) {
    const Span span = span_of_works(index, stream.records);
    const auto [place, fresh] = spans.try_emplace(stream.device, span);
    place->second.begin = std::min(place->second.begin, span.begin);
    place->second.end = std::max(place->second.end, span.end);
  }
  std::vector<StreamBusy> all;
  for (std::uint32_t place = 0; place < index.streams().size(); ++place) {
    const StreamInfo& stream = index.streams()[place];
    StreamBusy busy{.stream = place,
                    .recorded = index.recorded(spans.at(stream.device)),
                    .count = stream.records.size()};
    OwnTimes own(index);
    for (const std::uint32_t work : stream.records)
      busy.busy += own.add(span_of(index.record(work)));
    all.push_back(busy);
  }
  return all;
}

namespace {

constexpr std::array<std::string_view, kIdleCauses> kSentences{
    "The program waited until the device was done, and only then prepared more work.",
    "A batch or one of its allocations had no room in the budget, or it was another's turn: a "
    "larger budget or smaller batches help.",
    "A batch was not admitted: enough work was queued. The run-ahead target `auto` grows by such "
    "gaps.",
    "A launch was held back.",
    "No batch was begun: the program prepared its inputs or did other things.",
    "Work was submitted in time or one piece right after another, and began late.",
    "The recording does not say why."};

}  // namespace

std::string_view explain(IdleCause cause) noexcept {
  return kSentences[std::min(static_cast<std::size_t>(cause), kIdleCauses - 1)];
}

IdleCause cause_of(const GapFacts& facts) noexcept {
  const std::uint64_t before = facts.length - std::min(facts.length, facts.after_submission);
  if (facts.submission_known && facts.after_submission >= before) return IdleCause::kLaunch;
  const auto longest = std::ranges::max_element(facts.before_submission);
  if (*longest == 0) return IdleCause::kUnknown;
  return static_cast<IdleCause>(longest - facts.before_submission.begin());
}

}  // namespace weir::timeline
