#include "tools/timeline/analysis/thread_states.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_set>

namespace weir::timeline {
namespace {

using Turn = ThreadStates::Turn;

void add(IdleTimes& times, IdleCause cause, std::uint64_t time) {
  std::uint64_t& sum = times.at(static_cast<std::size_t>(cause));
  sum = add_capped(sum, time);
}

/// The waits and calls that are open while going through the turns.
class UnderWay {
 public:
  void turn(const Turn& turn) {
    if (turn.what == Turn::What::kWait) {
      if (turn.begins) waits_.push_back(turn);
      if (!turn.begins) ended_.insert(turn.number);
      while (!waits_.empty() && ended_.erase(waits_.front().number) != 0) waits_.pop_front();
      return;
    }
    std::uint64_t& count = turn.what == Turn::What::kCall ? calls_ : batches_;
    count = turn.begins ? count + 1 : less_or_zero(count, 1);
  }
  [[nodiscard]] const Turn* wait() const { return waits_.empty() ? nullptr : &waits_.front(); }
  [[nodiscard]] bool call() const noexcept { return calls_ != 0; }
  [[nodiscard]] bool batch() const noexcept { return batches_ != 0; }

 private:
  std::deque<Turn> waits_;                   ///< by begin; the first has not ended
  std::unordered_set<std::uint32_t> ended_;  ///< other than the first
  std::uint64_t calls_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace

ThreadStates::ThreadStates(std::vector<Turn> turns) {
  std::ranges::stable_sort(turns, {}, &Turn::at);
  build(turns);
  sum_up();
}

void ThreadStates::build(const std::vector<Turn>& turns) {
  const bool has_batches =
      std::ranges::any_of(turns, [](const Turn& turn) { return turn.what == Turn::What::kBatch; });
  UnderWay now;
  Span pause;  // without a wait or a call, within a batch if there are batches
  const auto end_pause = [&] {
    if (pause.length() == 0) return;
    append(pause, pause.length() <= kRightBehind ? IdleCause::kLaunch : IdleCause::kUnknown, 0);
    pause = {};
  };
  for (std::size_t i = 0; i < turns.size(); ++i) {
    now.turn(turns[i]);
    const Span span{turns[i].at, i + 1 < turns.size() ? turns[i + 1].at : turns[i].at};
    end_ = span.end;
    if (span.length() == 0) continue;
    const bool pauses = now.wait() == nullptr && !now.call() && (now.batch() || !has_batches);
    if (pauses) {
      if (pause.length() == 0) pause.begin = span.begin;
      pause.end = span.end;
      continue;
    }
    end_pause();
    if (const Turn* wait = now.wait()) {
      append(span, wait->cause, wait->site);
    } else {
      append(span, now.call() ? IdleCause::kLaunch : IdleCause::kLoader, 0);
    }
  }
  end_pause();
}

void ThreadStates::append(Span span, IdleCause cause, std::uint32_t site) {
  if (!segments_.empty() && segments_.back().cause == cause && segments_.back().site == site)
    return;
  segments_.push_back({.begin = span.begin, .site = site, .cause = cause});
}

void ThreadStates::sum_up() {
  IdleTimes sum{};
  std::uint32_t barrier = kNone;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    if (i % kBlock == 0) sums_.push_back(sum);
    if (segment.cause == IdleCause::kBarrier) barrier = static_cast<std::uint32_t>(i);
    segment.last_barrier = barrier;
    const std::uint64_t end = i + 1 < segments_.size() ? segments_[i + 1].begin : end_;
    add(sum, segment.cause, less_or_zero(end, segment.begin));
  }
}

std::size_t ThreadStates::segment_at(std::uint64_t at) const {
  const auto behind = std::ranges::upper_bound(segments_, at, {}, &Segment::begin);
  return static_cast<std::size_t>(behind - segments_.begin());
}

IdleTimes ThreadStates::until(std::uint64_t at) const {
  const std::size_t count = segment_at(at);  // number of segments that begin no later
  if (count == 0) return {};
  const std::size_t block = (count - 1) / kBlock;
  IdleTimes times = sums_[block];
  for (std::size_t i = block * kBlock; i < count; ++i) {
    const std::uint64_t end = i + 1 < segments_.size() ? segments_[i + 1].begin : end_;
    add(times, segments_[i].cause, less_or_zero(std::min(end, at), segments_[i].begin));
  }
  return times;
}

ThreadStates::Doings ThreadStates::in(Span span) const {
  if (span.length() == 0) return {};
  Doings doings{.times = until(span.end)};
  const IdleTimes before = until(span.begin);
  for (std::size_t i = 0; i < kIdleCauses; ++i)
    doings.times.at(i) = less_or_zero(doings.times.at(i), before.at(i));
  const std::size_t count = segment_at(span.end - 1);
  if (count != 0 && segments_[count - 1].last_barrier != kNone)
    doings.barrier_site = segments_[segments_[count - 1].last_barrier].site;
  return doings;
}

namespace {

struct WaitKind {
  TimelineKind kind;
  IdleCause cause;
};
constexpr std::array<WaitKind, 6> kWaits{{{TimelineKind::kBarrier, IdleCause::kBarrier},
                                          {TimelineKind::kSync, IdleCause::kBarrier},
                                          {TimelineKind::kPoolWait, IdleCause::kBudget},
                                          {TimelineKind::kMemoryWait, IdleCause::kBudget},
                                          {TimelineKind::kStall, IdleCause::kBudget},
                                          {TimelineKind::kPace, IdleCause::kPace}}};

using Threads = std::map<std::uint32_t, std::vector<Turn>>;

void add_slice(Threads& threads, const TimelineRecord& record, Turn turn) {
  const Span span = span_of(record);
  turn.site = record.site;
  turn.at = span.begin;
  turn.begins = true;
  threads[record.thread].push_back(turn);
  turn.at = span.end;
  turn.begins = false;
  threads[record.thread].push_back(turn);
}

void add_calls(const Index& index, Threads& threads) {
  for (const std::uint32_t place : index.of(TimelineKind::kSubmit))
    add_slice(threads, index.record(place), {.number = place, .what = Turn::What::kCall});
  for (const std::uint32_t place : index.of(TimelineKind::kCall)) {
    const TimelineRecord& record = index.record(place);
    // If a profiler has no record of the wait itself, the waiting call counts as one.
    const bool waits =
        index.process().name(record.name).find("Synchronize") != std::string_view::npos;
    add_slice(threads, record,
              {.number = place,
               .what = waits ? Turn::What::kWait : Turn::What::kCall,
               .cause = IdleCause::kBarrier});
  }
}

void add_batches(const Index& index, Threads& threads) {
  std::map<std::uint32_t, const TimelineRecord*> closed;
  for (const std::uint32_t place : index.of(TimelineKind::kClose))
    closed.try_emplace(index.record(place).batch, &index.record(place));
  for (const std::uint32_t place : index.of(TimelineKind::kAdmit)) {
    const TimelineRecord& record = index.record(place);
    const auto close = closed.find(record.batch);
    const bool is_closed = close != closed.end() && close->second->begin >= record.begin;
    std::uint32_t thread = record.thread;
    if (admission_of(record) == TimelineAdmission::kBefore) {
      if (!is_closed) continue;
      thread = close->second->thread;
    }
    Turn turn{
        .at = record.begin, .number = record.batch, .what = Turn::What::kBatch, .begins = true};
    threads[thread].push_back(turn);
    if (!is_closed) continue;  // open to the end of the recording
    turn.at = close->second->begin;
    turn.begins = false;
    threads[thread].push_back(turn);
  }
}

void add_waits(const Index& index, Threads& threads) {
  for (const WaitKind& wait : kWaits) {
    for (const std::uint32_t place : index.of(wait.kind)) {
      const TimelineRecord& record = index.record(place);
      if (!threads.contains(record.thread)) continue;
      const bool soft = wait.kind == TimelineKind::kStall &&
                        record.detail == static_cast<std::uint8_t>(TimelineStall::kRunAhead);
      add_slice(threads, record,
                {.number = place,
                 .what = Turn::What::kWait,
                 .cause = soft ? IdleCause::kRunAhead : wait.cause});
    }
  }
}

}  // namespace

FrontendStates::FrontendStates(const Index& index) {
  Threads threads;
  add_batches(index, threads);
  bool several = false;
  for (const std::uint32_t place : index.of(TimelineKind::kAdmit)) {
    const TimelineRecord& record = index.record(place);
    if (admission_of(record) == TimelineAdmission::kBefore) continue;
    begun_.emplace_back(record.batch, record.thread);
    several = several || (only_ != 0 && only_ != record.thread);
    only_ = record.thread;
  }
  if (several) only_ = 0;
  std::ranges::sort(begun_);
  add_calls(index, threads);
  add_waits(index, threads);
  for (auto& [thread, turns] : threads) threads_.try_emplace(thread, std::move(turns));
}

const ThreadStates* FrontendStates::of(std::uint32_t thread) const {
  const auto found = threads_.find(thread);
  return found == threads_.end() ? nullptr : &found->second;
}

std::uint32_t FrontendStates::thread_of_batch(std::uint32_t batch) const {
  const auto found =
      std::ranges::lower_bound(begun_, batch, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  return batch != 0 && found != begun_.end() && found->first == batch ? found->second : only_;
}

}  // namespace weir::timeline
