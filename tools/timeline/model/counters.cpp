#include "tools/timeline/model/counters.hpp"

#include <algorithm>

namespace weir::timeline {
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
  return {sample.allocated, sample.awaiting, sample.cached, sample.reserved(), sample.budget, held};
}

void Counters::close_window(Pool& pool, std::vector<CounterSample>& samples) {
  if (!pool.last) return;
  bool only_last = true;
  for (const auto& highest : pool.highest) {
    only_last = only_last && (!highest || *highest == *pool.last);
  }
  if (only_last) {
    samples.push_back(*pool.last);
  } else {
    std::vector<CounterSample> found;
    for (const auto& highest : pool.highest) {
      // At equal times the reader keeps the later one in the file, which must be the last value.
      if (highest && *highest != *pool.last) found.push_back(*highest);
    }
    append(std::move(found), samples);
    samples.push_back(*pool.last);
  }
  for (auto& highest : pool.highest) highest.reset();
  pool.last.reset();
}

void Counters::add_statistics(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  Pool& pool = pools_[record.source];
  if (record.kind == TimelineKind::kPool || record.kind == TimelineKind::kBudget) {
    pool.budget = record.bytes;
  }
  const CounterSample sample{.source = record.source,
                             .time = record.begin,
                             .allocated = record.allocated,
                             .awaiting = record.awaiting,
                             .cached = record.cached,
                             .budget = pool.budget};
  if (pool.last && window_of(record.begin) > window_of(pool.last->time)) {
    close_window(pool, samples);
  }
  const Gauges values = gauges(sample);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] <= pool.most[i]) continue;
    pool.most[i] = values[i];
    pool.highest[i] = sample;
  }
  // Records of several threads may arrive out of order: the one with the highest number counts.
  if (pool.last && record.sequence < pool.last_sequence) return;
  pool.last = sample;
  pool.last_sequence = record.sequence;
}

void Counters::close_window(Series& series, std::vector<CounterSample>& samples) {
  if (!series.last) return;
  if (series.highest && *series.highest != *series.last) samples.push_back(*series.highest);
  samples.push_back(*series.last);
  series.highest.reset();
  series.last.reset();
}

void Counters::add_value(Series& series, const CounterSample& sample,
                         std::vector<CounterSample>& samples) {
  if (series.last && window_of(sample.time) > window_of(series.last->time)) {
    close_window(series, samples);
  }
  if (sample.value > series.most) {
    series.most = sample.value;
    series.highest = sample;
  }
  series.last = sample;
}

void Counters::add_queued_time(std::vector<CounterSample>& samples) {
  for (const QueuedTime::Step& step : steps_) {
    add_value(time_, {.of = CounterSample::Of::kQueuedTime, .time = step.time, .value = step.value},
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
  add_value(
      batches_,
      {.of = CounterSample::Of::kQueuedBatches, .time = record.begin, .value = closed_.size()},
      samples);
}

/// A batch without a target adds nothing: no policy but `throttled` has one, nor has an older file.
void Counters::add_target(const TimelineRecord& record, std::vector<CounterSample>& samples) {
  if (record.requested == 0) return;
  add_value(target_,
            {.of = CounterSample::Of::kTarget, .time = record.begin, .value = record.requested},
            samples);
}

void Counters::add_driver_memory(const TimelineRecord& record,
                                 std::vector<CounterSample>& samples) {
  driver_memory_.add(record);
  add_value(driver_,
            {.of = CounterSample::Of::kDriverMemory,
             .time = record.begin,
             .value = driver_memory_.device()},
            samples);
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
