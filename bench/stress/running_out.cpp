#include "bench/stress/running_out.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tools/replay/subject/pool_subject.hpp"

namespace weir::bench {
namespace {

using replay::Action;
using replay::Operation;
using replay::Subject;
using replay::Trace;

constexpr Bytes kSmallest{512};

StreamId stream_of(std::uint32_t stream) { return {std::uint64_t{stream} + 1}; }

/// Checks a subject's counts against the `requested` bytes of its live buffers. Returns the fault;
/// empty if there is none. A peer is checked only against what it reports itself.
std::string accounting_fault(const replay::Subject& subject, Bytes requested) {
  const replay::Footprint footprint = subject.footprint();
  const bool says = footprint.allocated.count != 0 || requested.count == 0;
  if (says && footprint.allocated < requested) {
    return "allocated is less than what is live: " + format_bytes(footprint.allocated);
  }
  if (requested.count == 0 && footprint.allocated.count != 0) {
    return "nothing is live, and " + format_bytes(footprint.allocated) + " are allocated";
  }
  if (footprint.allocated > footprint.reserved) return "allocated is more than reserved";
  const auto* const pool = dynamic_cast<const replay::PoolSubject*>(&subject);
  if (pool == nullptr) return {};

  const Statistics statistics = pool->pool().statistics();
  if (statistics.requested.current != requested) {
    return "the pool has " + format_bytes(statistics.requested.current) + " requested, and " +
           format_bytes(requested) + " are live";
  }
  const Bytes sum =
      statistics.allocated.current + statistics.awaiting.current + statistics.cached.current;
  if (sum != statistics.reserved.current) {
    return "allocated + awaiting + cached is not reserved: " + format_bytes(sum) + " and " +
           format_bytes(statistics.reserved.current);
  }
  if (statistics.reserved.current > statistics.budget) return "reserved is above the budget";
  return {};
}

/// Plays a trace on a subject, up to the first refusal.
class Run {
 public:
  Run(const Trace& trace, Subject& subject)
      : trace_(trace), subject_(subject), live_(trace.buffers) {}

  /// Returns the refused operation, if any.
  [[nodiscard]] std::optional<std::size_t> play() {
    for (std::size_t i = 0; i < trace_.operations.size(); ++i) {
      if (!play(trace_.operations[i])) return i;
    }
    return std::nullopt;
  }
  [[nodiscard]] Bytes requested() const { return requested_; }

  /// Frees the largest live buffer and returns its size; zero if there is none.
  Bytes free_largest() {
    const auto largest = std::ranges::max_element(
        live_, {}, [](const Live& live) { return live.pointer == nullptr ? Bytes{} : live.bytes; });
    if (largest == live_.end() || largest->pointer == nullptr) return {};
    const Bytes bytes = largest->bytes;
    free(*largest, largest->stream);
    return bytes;
  }
  void free_all() {
    for (Live& live : live_) {
      if (live.pointer != nullptr) free(live, live.stream);
    }
  }

 private:
  struct Live {
    void* pointer = nullptr;
    Bytes bytes;
    StreamId stream;
  };

  [[nodiscard]] bool play(const Operation& operation) {
    Live& live = live_[operation.buffer];
    const StreamId stream = stream_of(operation.stream);
    if (operation.action == Action::kUse) subject_.record_use(live.pointer, stream);
    if (operation.action == Action::kFree) free(live, stream);
    if (operation.action != Action::kAllocate) return true;
    live = {subject_.allocate(operation.bytes, stream), operation.bytes, stream};
    if (live.pointer == nullptr) return false;
    requested_ += operation.bytes;
    return true;
  }
  void free(Live& live, StreamId stream) {
    subject_.deallocate(live.pointer, live.bytes, stream);
    requested_ -= live.bytes;
    live.pointer = nullptr;
  }

  const Trace& trace_;
  Subject& subject_;
  std::vector<Live> live_;
  Bytes requested_;
};

/// Returns whether a request of `bytes` succeeds; frees it at once.
bool serves(Subject& subject, Bytes bytes, StreamId stream) {
  void* const memory = subject.allocate(bytes, stream);
  if (memory != nullptr) subject.deallocate(memory, bytes, stream);
  return memory != nullptr;
}

bool serves_smaller(Subject& subject, Run& run, Bytes refused, StreamId stream) {
  for (Bytes half{refused.count / 2}; half >= kSmallest; half = {half.count / 2}) {
    if (serves(subject, half, stream)) return true;
  }
  const Bytes freed = run.free_largest();
  return serves(subject, std::max(Bytes{freed.count / 2}, Bytes{1}), stream);
}

/// Returns the fault found after the refusal of operation `refused`; empty if there is none.
/// Afterwards nothing is live.
std::string wrong_after_refusal(Subject& subject, Run& run, const Operation& refused) {
  const StreamId stream = stream_of(refused.stream);
  std::string wrong = accounting_fault(subject, run.requested());
  if (!wrong.empty()) return wrong;
  const Bytes allocated = subject.footprint().allocated;
  if (serves(subject, refused.bytes, stream)) {
    return "what was refused is served when it is asked for again";
  }
  if (subject.footprint().allocated != allocated) return "a refusal changes what is allocated";
  if (!serves_smaller(subject, run, refused.bytes, stream)) return "no smaller request is served";
  run.free_all();
  return accounting_fault(subject, {});
}

/// A level that several threads change, and its peak.
class SharedGauge {
 public:
  void add(Bytes bytes) { raise(level_.fetch_add(bytes.count) + bytes.count); }
  void remove(Bytes bytes) { level_.fetch_sub(bytes.count); }
  void raise(std::uint64_t level) {
    std::uint64_t before = peak_.load();
    while (before < level && !peak_.compare_exchange_weak(before, level)) {
    }
  }
  [[nodiscard]] Bytes peak() const { return {peak_.load()}; }

 private:
  std::atomic<std::uint64_t> level_{0};
  std::atomic<std::uint64_t> peak_{0};
};

struct Shared {
  SharedGauge requested;
  SharedGauge reserved;
  std::atomic<std::uint64_t> refused{0};
};

void play_thread(const replay::Trace& trace, replay::Subject& subject, Shared& shared) {
  constexpr std::size_t kLookEvery = 16;
  std::vector<void*> pointers(trace.buffers);
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const replay::Operation& operation = trace.operations[i];
    const StreamId stream = stream_of(operation.stream);
    void*& pointer = pointers[operation.buffer];
    if (operation.action == replay::Action::kAllocate) {
      pointer = subject.allocate(operation.bytes, stream);
      if (pointer == nullptr) {
        ++shared.refused;
      } else {
        shared.requested.add(operation.bytes);
      }
    } else if (operation.action == replay::Action::kFree && pointer != nullptr) {
      subject.deallocate(pointer, operation.bytes, stream);
      shared.requested.remove(operation.bytes);
    }
    if (i % kLookEvery == 0) shared.reserved.raise(subject.footprint().reserved.count);
  }
}

}  // namespace

RunningOut run_out(const Trace& trace, const replay::MakeSubject& make, Bytes capacity) {
  RunningOut result;
  bool serves_again = false;
  const Operation* refused = nullptr;
  {
    const std::unique_ptr<Subject> subject = make(capacity);
    Run run(trace, *subject);
    const auto at = run.play();
    if (!at) {
      run.free_all();
      return result;
    }
    refused = &trace.operations[*at];
    if (run.requested().count == 0 && !serves(*subject, kSmallest, stream_of(refused->stream))) {
      return {.ending = Ending::kCannotBegin, .refused_at = *at + 1, .wrong = {}};
    }
    result = {.ending = Ending::kClean,
              .refused_at = *at + 1,
              .wrong = wrong_after_refusal(*subject, run, *refused)};
    serves_again =
        result.wrong.empty() && serves(*subject, refused->bytes, stream_of(refused->stream));
  }
  // Not at the same time as the first one: some peers allow only one subject at a time.
  if (result.wrong.empty() && !serves_again &&
      serves(*make(capacity), refused->bytes, stream_of(refused->stream))) {
    result.wrong = "once all is freed, " + format_bytes(refused->bytes) + " are not served";
  }
  if (!result.wrong.empty()) result.ending = Ending::kUnclean;
  return result;
}

ThreadsFigures replay_threads(std::span<const replay::Trace> traces, replay::Subject& subject) {
  Shared shared;
  {
    std::vector<std::jthread> threads;
    for (const replay::Trace& trace : traces) {
      threads.emplace_back([&trace, &subject, &shared] { play_thread(trace, subject, shared); });
    }
  }
  return {.peak_requested = shared.requested.peak(),
          .peak_reserved = shared.reserved.peak(),
          .refused = shared.refused.load()};
}

RunningOut run_out_threads(std::span<const replay::Trace> traces, const replay::MakeSubject& make,
                           Bytes capacity) {
  const std::unique_ptr<replay::Subject> subject = make(capacity);
  const ThreadsFigures figures = replay_threads(traces, *subject);
  RunningOut result{.ending = figures.refused == 0 ? Ending::kCompleted : Ending::kClean,
                    .refused_at = figures.refused,
                    .wrong = accounting_fault(*subject, {})};
  if (!result.wrong.empty()) result.ending = Ending::kUnclean;
  return result;
}

}  // namespace weir::bench
