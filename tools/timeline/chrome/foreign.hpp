#pragma once

// Converts events of another program's Chrome trace to records. Takes the PyTorch profiler's
// (Kineto's) device events: kernels, copies, sets, driver calls, synchronisation, and the memory of
// its caching allocator.

#include <map>
#include <utility>

#include "tools/timeline/chrome/event.hpp"
#include "tools/timeline/chrome/process_builder.hpp"

namespace weir::timeline::chrome {

struct EventTimes {
  std::uint64_t begin = 0;  ///< nanoseconds, like the next
  std::uint64_t end = 0;
};

class ForeignTaker {
 public:
  /// `state` must outlive this.
  explicit ForeignTaker(ReadState& state) : state_(state), builder_(state) {}

  void take(const Event& event);
  /// Returns one process with times from its first event on, and a note of the events left out, if
  /// any. Throws UsageError if no event could be used.
  [[nodiscard]] Timeline finish(const FileFacts& facts);

 private:
  /// Returns whether the slice was used.
  bool take_slice(const Event& event, EventTimes times);
  bool take_memory(const Event& event, EventTimes times);
  bool take_thread(const Event& event);
  [[nodiscard]] std::uint32_t thread_of(const Event& event);
  /// Says how many events were left out, and why; empty if none.
  [[nodiscard]] std::string left_out() const;
  void set_zero(const FileFacts& facts);
  /// Derives from sums what the profiler does not record of pools: each pool's state before its
  /// first event, and the memory that came from the driver and went back.
  static void complete_pools(Process& process);

  ReadState& state_;
  ProcessBuilder builder_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> threads_;  ///< by pid and tid
  std::uint64_t memory_events_ = 0;
  bool any_ = false;           ///< anything but threads was used
  std::uint64_t untimed_ = 0;  ///< events left out for lack of a valid time
  std::uint64_t others_ = 0;   ///< all other events left out
};

}  // namespace weir::timeline::chrome
