#include "bench/simulate/oracle.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace weir::simulate {
namespace {

/// Moves each admission to the latest moment that leaves all computes where they are. What a
/// producer does between two admissions takes as long as it did.
void admit_late(std::vector<BatchRecord>& records) {
  std::map<std::size_t, Time> later;  // the producer's next admission
  Time copy_stream = Time::max();
  for (std::size_t i = records.size(); i-- > 0;) {
    BatchRecord& record = records[i];
    const Flight& flight = record.flight;
    const Time copy = std::min(flight.begin, copy_stream) - flight.copying;
    copy_stream = copy;
    // The copy is enqueued half way between admission and close.
    Time latest = std::min(copy - flight.shape.submit / 2, flight.begin - flight.shape.submit);
    const auto next = later.find(flight.producer);
    if (next != later.end()) {
      latest = std::min(latest, next->second - flight.shape.submit - record.next_load);
    }
    latest = std::max(latest, record.admitted);
    later[flight.producer] = latest;
    record.admitted = latest;
    record.closed = std::max(record.closed, latest + flight.shape.submit);
  }
}

/// Frees what batches keep when the batch that many later of their producer is closed.
void free_late(std::vector<BatchRecord>& records, std::uint64_t retain) {
  if (retain == 0) return;
  std::map<std::size_t, std::deque<BatchRecord*>> kept;
  for (BatchRecord& record : records) {
    auto& own = kept[record.flight.producer];
    own.push_back(&record);
    if (own.size() <= retain) continue;
    own.front()->kept_until = record.closed;
    own.pop_front();
  }
}

struct Change {
  Time time;
  bool takes;
  Bytes apart;
  Bytes work;
};

std::vector<Change> changes_of(const std::vector<BatchRecord>& records) {
  std::vector<Change> changes;
  for (const BatchRecord& record : records) {
    const Flight& flight = record.flight;
    const BatchShape& shape = flight.shape;
    // Memory that was handed over is the computes' until the copy begins.
    const bool is_handed = flight.copy_after > Time{};
    const Time taken = is_handed ? flight.copied - flight.copying : record.admitted;
    changes.push_back({taken, true, shape.inputs + shape.retained, {}});
    // Taken half way between admission and close. The stream's working sets follow each other.
    const Time works = std::max(record.admitted, flight.begin - shape.submit / 2);
    changes.push_back({works, true, {}, shape.work});
    changes.push_back({flight.computed, false, {}, shape.work});
    changes.push_back(
        {flight.end, false, shape.inputs, {}});  // its collective may need them longer
    if (shape.retained > Bytes{} && record.kept_until > Time{}) {
      changes.push_back({std::max(record.kept_until, flight.end), false, shape.retained, {}});
    }
  }
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.takes < b.takes;
  });
  return changes;
}

/// Fills peaks and series from the moments at which batches take and give memory.
void measure(RunResult& run, bool keep_series) {
  Bytes apart;
  std::map<Bytes, std::uint64_t> works;
  std::uint64_t passed = 0;
  std::uint64_t submitted = 0;
  run.peak = run.warm_peak = {};
  for (const Change& change : changes_of(run.records)) {
    if (change.takes) {
      apart += change.apart;
      if (change.work > Bytes{}) {
        ++works[change.work];
        ++submitted;
      }
    } else {
      apart -= change.apart;
      if (change.work > Bytes{}) {
        const auto work = works.find(change.work);
        if (--work->second == 0) works.erase(work);
        ++passed;
        --submitted;
      }
    }
    const Bytes used = apart + (works.empty() ? Bytes{} : works.rbegin()->first);
    run.peak = std::max(run.peak, used);
    if (passed >= RunResult::kWarmUp) run.warm_peak = std::max(run.warm_peak, used);
    if (keep_series) {
      run.series.push_back({.time = change.time, .used = used, .submitted = submitted});
    }
  }
}

}  // namespace

RunResult best_schedule(const Workload& workload, const PolicyChoice& policy,
                        const RunOptions& options) {
  RunOptions without_delay = options;
  without_delay.jitter.wake_up = {};
  without_delay.hand_over.reset();
  without_delay.keep_batches = true;
  without_delay.keep_series = false;
  std::vector<PolicyChoice::Rule> rules{PolicyChoice::Rule::kNothing};
  if (workload.producers.size() > 1) rules.push_back(PolicyChoice::Rule::kRoom);
  std::optional<RunResult> best;
  const auto try_with = [&](const PolicyChoice& filling) {
    RunResult run = simulate(workload, filling, without_delay);
    const bool is_better = !best || std::pair(best->failed, run.throughput()) >
                                        std::pair(run.failed, best->throughput());
    if (is_better) best = std::move(run);
  };
  for (const PolicyChoice::Rule rule : rules) {
    for (const HandOver hand_over : {HandOver::kNever, HandOver::kLast, HandOver::kAlways}) {
      PolicyChoice filling = policy;
      filling.rule = rule;
      filling.hand_over = hand_over;
      try_with(filling);
      filling.in_turn = false;
      if (workload.producers.size() > 1) try_with(filling);
    }
  }
  RunResult run = std::move(*best);
  admit_late(run.records);
  free_late(run.records, workload.retain);
  measure(run, options.keep_series);
  if (!options.keep_batches) run.records.clear();
  return run;
}

}  // namespace weir::simulate
