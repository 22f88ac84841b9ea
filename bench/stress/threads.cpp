// Runs several threads on one subject.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "bench/stress/accounting.hpp"
#include "bench/stress/running_out.hpp"

namespace weir::bench {
namespace {

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
    const StreamId stream{std::uint64_t{operation.stream} + 1};
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
