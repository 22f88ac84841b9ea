#include "tools/timeline/model/counters.hpp"

#include <algorithm>
#include <limits>

namespace weir::timeline {
namespace {

/// Limit on incomplete pairs, and on calls that may still begin work. Older ones are dropped.
constexpr std::size_t kMostKept = 65536;
/// How much longer than seen so far future work may have waited since its submission.
constexpr std::uint64_t kSlack = 10'000'000;  // ns

}  // namespace

void QueuedTime::count(std::uint64_t submitted, const Work& work) {
  // Nothing runs longer, but a file may claim so.
  constexpr std::uint64_t kLongest = 1'000'000'000'000'000;
  const auto length =
      static_cast<std::int64_t>(std::min(kLongest, work.to - std::min(work.from, work.to)));
  changes_.emplace(std::min(submitted, work.from), length);
  changes_.emplace(work.to, -length);
}

void QueuedTime::add_operation(const TimelineRecord& record) {
  const auto [place, fresh] = halves_.try_emplace(record.id);
  Half& half = place->second;
  if (record.kind == TimelineKind::kSubmit) {
    half.submitted = record.end;
  } else {
    half.work = {record.begin, record.end};
  }
  if (!fresh && half.submitted && half.work.to != 0) {
    count_work(*half.submitted, half.work);
    halves_.erase(place);
  } else if (halves_.size() > kMostKept) {
    halves_.erase(halves_.begin());
  }
}

void QueuedTime::add_call(const TimelineRecord& record) {
  calls_[record.id] = record.end;
  if (calls_.size() > kMostKept) calls_.erase(calls_.begin());
  // A profiler may report the work before the call.
  const auto [first, last] = waiting_.equal_range(record.id);
  for (auto each = first; each != last; ++each) count_work(record.end, each->second);
  waiting_.erase(first, last);
}

void QueuedTime::count_work(std::uint64_t submitted, const Work& work) {
  longest_wait_ = std::max(longest_wait_, work.from - std::min(work.from, submitted));
  count(submitted, work);
}

/// Counts work without a call from its begin.
void QueuedTime::give_up_waiting() {
  for (const auto& [id, work] : waiting_) count(work.from, work);
  waiting_.clear();
}

void QueuedTime::add_work(const TimelineRecord& record) {
  const Work work{record.begin, record.end};
  any_work_ = true;
  latest_ = std::max(latest_, work.from);
  if (record.id == 0) {
    count(work.from, work);
    return;
  }
  if (const auto call = calls_.find(record.id); call != calls_.end()) {
    count_work(call->second, work);
    return;
  }
  waiting_.emplace(record.id, work);
  if (waiting_.size() <= kMostKept) return;
  count(waiting_.begin()->second.from, waiting_.begin()->second);
  waiting_.erase(waiting_.begin());
}

/// Returns a time before which no future work was submitted, as far as known.
std::uint64_t QueuedTime::known_until() const {
  if (!any_work_) {
    if (halves_.empty()) return 0;  // the next one may be older than what waits here
    const Half& oldest = halves_.begin()->second;
    return oldest.submitted ? *oldest.submitted : earliest_submission(oldest.work.from);
  }
  std::uint64_t from = latest_;
  if (!waiting_.empty()) from = std::min(from, waiting_.begin()->second.from);
  return earliest_submission(from);
}

/// Returns the earliest possible submission of work that begins at `from` or later, judging by the
/// longest wait so far.
std::uint64_t QueuedTime::earliest_submission(std::uint64_t from) const {
  constexpr std::uint64_t kTwice = 2;
  const std::uint64_t wait = std::min(longest_wait_, from) * kTwice + kSlack;
  return from - std::min(from, wait);
}

void QueuedTime::apply_until(std::uint64_t time, std::vector<Step>& steps) {
  while (!changes_.empty() && changes_.top().first < time) {
    const auto [when, by] = changes_.top();
    changes_.pop();
    queued_ += by;
    told_until_ = std::max(told_until_, when);
    steps.push_back({told_until_, static_cast<std::uint64_t>(std::max<std::int64_t>(0, queued_))});
  }
}

void QueuedTime::add(const TimelineRecord& record, std::vector<Step>& steps) {
  switch (record.kind) {
    case TimelineKind::kSubmit:
    case TimelineKind::kExecute:
      if (record.id != 0) add_operation(record);
      break;
    case TimelineKind::kCall:
      if (record.id != 0) add_call(record);
      break;
    case TimelineKind::kKernel:
    case TimelineKind::kCopy:
    case TimelineKind::kSet:
      add_work(record);
      break;
    case TimelineKind::kStart:  // a profiler may restart its call numbers
      give_up_waiting();
      calls_.clear();
      break;
    default:
      return;
  }
  apply_until(known_until(), steps);
}

void QueuedTime::finish(std::vector<Step>& steps) {
  give_up_waiting();
  apply_until(std::numeric_limits<std::uint64_t>::max(), steps);
}

namespace {

constexpr std::uint64_t window_of(std::uint64_t time) { return time / kCounterWindow; }

/// Appends the samples that exist, by time, each once.
void append(std::vector<CounterSample> found, std::vector<CounterSample>& samples) {
  std::stable_sort(found.begin(), found.end(),
                   [](const CounterSample& a, const CounterSample& b) { return a.time < b.time; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  samples.insert(samples.end(), found.begin(), found.end());
}

}  // namespace

Counters::Gauges Counters::gauges(const CounterSample& sample) {
  const std::uint64_t held = sample.allocated + sample.awaiting;
  return {sample.allocated, sample.awaiting, sample.cached, sample.reserved(), sample.budget, held,
          sample.value};
}

void Counters::close_window(Series& series, std::vector<CounterSample>& samples) {
  if (!series.last) return;
  std::vector<CounterSample> found;
  for (auto& highest : series.highest) {
    // At equal times the reader keeps the later one in the file, which must be the last value.
    if (highest && *highest != *series.last) found.push_back(*highest);
    highest.reset();
  }
  if (!found.empty()) append(std::move(found), samples);
  samples.push_back(*series.last);
  series.last.reset();
}

void Counters::add_sample(Series& series, const CounterSample& sample, std::uint64_t sequence,
                          std::vector<CounterSample>& samples) {
  if (series.last && window_of(sample.time) > window_of(series.last->time)) {
    close_window(series, samples);
  }
  const Gauges values = gauges(sample);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= series.most[i]) continue;
    series.most[i] = values[i];
    series.highest[i] = sample;
  }
  // Records of several threads may arrive out of order: the one with the highest number counts.
  if (series.last && sequence < series.last_sequence) return;
  series.last = sample;
  series.last_sequence = sequence;
}

void Counters::add_statistics(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  Series& pool = pools_[record.source];
  if (record.kind == TimelineKind::kPool || record.kind == TimelineKind::kBudget) {
    pool.budget = record.bytes;
  }
  add_sample(pool,
             {.source = record.source,
              .time = record.begin,
              .allocated = record.allocated,
              .awaiting = record.awaiting,
              .cached = record.cached,
              .budget = pool.budget},
             record.sequence, samples);
}

void Counters::add_queued_time(std::vector<CounterSample>& samples) {
  for (const QueuedTime::Step& step : steps_) {
    add_sample(time_,
               {.of = CounterSample::Of::kQueuedTime, .time = step.time, .value = step.value}, 0,
               samples);
  }
  steps_.clear();
}

void Counters::add_batch(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  if (record.kind == TimelineKind::kClose) {
    if (settled_early_.erase(record.batch) == 0) closed_.insert(record.batch);
  } else if (closed_.erase(record.batch) == 0) {
    settled_early_.insert(record.batch);
  }
  add_sample(
      batches_,
      {.of = CounterSample::Of::kQueuedBatches, .time = record.begin, .value = closed_.size()}, 0,
      samples);
}

/// A batch without a target adds nothing: no policy but `throttled` has one, nor has an older file.
void Counters::add_target(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  if (record.requested == 0) return;
  add_sample(target_,
             {.of = CounterSample::Of::kTarget, .time = record.begin, .value = record.requested}, 0,
             samples);
}

void Counters::add_driver_memory(const TimelineRecord& record,
                                 std::vector<CounterSample>& samples) {
  driver_memory_.add(record);
  add_sample(driver_,
             {.of = CounterSample::Of::kDriverMemory,
              .time = record.begin,
              .value = driver_memory_.device()},
             0, samples);
}

void Counters::add(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  switch (record.kind) {
    case TimelineKind::kPool:
    case TimelineKind::kAllocate:
    case TimelineKind::kFree:
    case TimelineKind::kSettled:
    case TimelineKind::kUse:
    case TimelineKind::kReserve:
    case TimelineKind::kRelease:
    case TimelineKind::kMap:
    case TimelineKind::kFailure:
    case TimelineKind::kBudget:
    case TimelineKind::kPressure:
    case TimelineKind::kPoolEnd:
      add_statistics(record, samples);
      break;
    case TimelineKind::kAdmit:
      add_target(record, samples);
      break;
    case TimelineKind::kClose:
    case TimelineKind::kSettle:
      add_batch(record, samples);
      break;
    case TimelineKind::kDriverAlloc:
    case TimelineKind::kDriverFree:
      add_driver_memory(record, samples);
      break;
    default:
      queued_.add(record, steps_);
      add_queued_time(samples);
      break;
  }
}

void Counters::finish(std::vector<CounterSample>& samples) {
  queued_.finish(steps_);
  add_queued_time(samples);
  for (auto& [source, pool] : pools_) close_window(pool, samples);
  close_window(batches_, samples);
  close_window(time_, samples);
  close_window(target_, samples);
  close_window(driver_, samples);
}

}  // namespace weir::timeline
