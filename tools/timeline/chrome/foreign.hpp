#pragma once

// Events of another program's Chrome trace as records. What the PyTorch profiler (Kineto) writes of
// a device is taken: kernels, copies, sets, calls into the driver, synchronisation, and the memory
// of its caching allocator.

#include <map>
#include <utility>

#include "tools/timeline/chrome/builder.hpp"
#include "tools/timeline/chrome/event.hpp"

namespace weir::timeline::chrome {

class ForeignTaker final : public EventTaker {
 public:
  /// `state` outlives this.
  explicit ForeignTaker(ReadState& state) : state_(state), builder_(state) {}

  void take(const Event& event) override;
  /// One process, its times from its first event on, with a note of how many events were left out.
  /// UsageError where none could be taken.
  [[nodiscard]] Timeline finish(const FileFacts& facts);

 private:
  /// Whether it was taken.
  bool take_slice(const Event& event);
  bool take_memory(const Event& event);
  bool take_thread(const Event& event);
  [[nodiscard]] std::uint32_t thread_of(const Event& event);
  void set_zero(const FileFacts& facts);
  /// Adds what the profiler does not say of its pools, but its sums do: each pool as it was before
  /// its first event, and what came from the driver and went back.
  static void complete_pools(Process& process);

  ReadState& state_;
  ProcessBuilder builder_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> threads_;  ///< by pid and tid
  std::uint64_t memory_events_ = 0;
  bool any_ = false;  ///< something but threads was taken
  std::uint64_t left_out_ = 0;
};

}  // namespace weir::timeline::chrome
