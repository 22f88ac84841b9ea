#include "tools/replay/measure/engine.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <vector>

namespace weir::replay {
namespace {

constexpr StreamId stream_of(const Operation& operation) noexcept {
  return {std::uint64_t{operation.stream} + 1};
}

/// Plays a trace on a subject and keeps its buffers' addresses.
class Player {
 public:
  Player(const Trace& trace, Subject& subject)
      : trace_(trace), subject_(subject), pointers_(trace.buffers) {}

  /// Performs operation `index`. Returns false if the subject has no memory for it.
  [[nodiscard]] bool play(std::size_t index) {
    const Operation& operation = trace_.operations[index];
    void*& pointer = pointers_[operation.buffer];
    const StreamId stream = stream_of(operation);
    switch (operation.action) {
      case Action::kAllocate:
        pointer = subject_.allocate(operation.bytes, stream);
        return pointer != nullptr;
      case Action::kFree:
        subject_.deallocate(pointer, operation.bytes, stream);
        pointer = nullptr;
        return true;
      case Action::kUse:
        subject_.record_use(pointer, stream);
        return true;
    }
    return true;
  }
  /// Returns the number of completed operations: all, unless one finds no memory.
  [[nodiscard]] std::size_t play_all() {
    std::size_t index = 0;
    while (index < trace_.operations.size() && play(index)) ++index;
    return index;
  }
  [[nodiscard]] const void* pointer_of(const Operation& operation) const {
    return pointers_[operation.buffer];
  }
  /// Frees the buffers that are live after the first `done` operations.
  void free_rest(std::size_t done) {
    for (const Operation& operation : std::span(trace_.operations).first(done)) {
      if (operation.action != Action::kAllocate) continue;
      void* const pointer = pointers_[operation.buffer];
      if (pointer != nullptr) subject_.deallocate(pointer, operation.bytes, stream_of(operation));
      pointers_[operation.buffer] = nullptr;
    }
  }

 private:
  const Trace& trace_;
  Subject& subject_;
  std::vector<void*> pointers_;  ///< by buffer; null outside its lifetime
};

void note_levels(Figures& figures, Bytes requested, const Footprint& now) {
  figures.peak_requested = std::max(figures.peak_requested, requested);
  if (now.allocated > figures.peak_allocated) {
    figures.peak_allocated = now.allocated;
    figures.waste = minus_or_zero(now.allocated, requested);
  }
  if (now.reserved > figures.peak_reserved) {
    figures.peak_reserved = now.reserved;
    figures.free_at_peak = minus_or_zero(now.reserved, now.allocated);
    figures.largest_free_at_peak = now.largest_free;
  }
  figures.driver_calls = now.driver_calls;
  figures.mapped_pages = now.mapped_pages;
  figures.waits = now.waits;
}

}  // namespace

std::optional<double> Figures::fragmentation() const {
  if (peak_allocated.count == 0 || peak_reserved.count == 0) return std::nullopt;
  return 1 - static_cast<double>(peak_allocated.count) / static_cast<double>(peak_reserved.count);
}

std::optional<double> Figures::largest_free_share() const {
  if (peak_allocated.count == 0 || free_at_peak.count == 0) return std::nullopt;
  return static_cast<double>(largest_free_at_peak.count) / static_cast<double>(free_at_peak.count);
}

Figures replay(const Trace& trace, Subject& subject, const Observe& observe) {
  Player player(trace, subject);
  Figures figures;
  Bytes requested;
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const Operation& operation = trace.operations[i];
    const void* const freed = player.pointer_of(operation);
    const bool served = player.play(i);
    if (served && operation.action == Action::kAllocate) requested += operation.bytes;
    if (operation.action == Action::kFree) requested -= operation.bytes;
    const Footprint now = subject.footprint();
    note_levels(figures, requested, now);
    if (!served) {
      figures.refusal = {
          .operation = i + 1, .asked = operation.bytes, .requested = requested, .footprint = now};
      break;
    }
    ++figures.operations;
    if (!observe) continue;
    const void* const pointer =
        operation.action == Action::kFree ? freed : player.pointer_of(operation);
    observe({.operation = i,
             .what = operation,
             .pointer = pointer,
             .requested = requested,
             .footprint = now});
  }
  player.free_rest(figures.operations);
  return figures;
}

bool completes(const Trace& trace, Subject& subject) {
  Player player(trace, subject);
  const std::size_t done = player.play_all();
  player.free_rest(done);
  return done == trace.operations.size();
}

double time_replay(const Trace& trace, Subject& subject) {
  Player player(trace, subject);
  const auto began = std::chrono::steady_clock::now();
  const std::size_t done = player.play_all();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
  player.free_rest(done);
  return took.count() / static_cast<double>(std::max<std::size_t>(done, 1));
}

}  // namespace weir::replay
