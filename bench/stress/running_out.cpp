#include "bench/stress/running_out.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "bench/stress/accounting.hpp"

namespace weir::bench {
namespace {

using replay::Action;
using replay::Operation;
using replay::Subject;
using replay::Trace;

constexpr Bytes kSmallest{512};

StreamId stream_of(std::uint32_t stream) { return {std::uint64_t{stream} + 1}; }

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

}  // namespace weir::bench
