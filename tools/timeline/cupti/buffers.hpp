#pragma once

// The buffers that CUPTI writes records into. CUPTI asks for them and hands them back under a lock
// of its own, from any thread: so nothing here locks, allocates or waits.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::timeline::cupti {

/// A fixed number of buffers. take() and complete() may be called by any threads at any time, the
/// other functions by one thread at a time.
class ActivityBuffers {
 public:
  static constexpr std::size_t kCount = 64;
  static constexpr std::size_t kBytes = std::size_t{512} << 10;

  struct Filled {
    std::uint8_t* data = nullptr;
    std::size_t valid = 0;
  };

  ActivityBuffers() = default;
  ActivityBuffers(const ActivityBuffers&) = delete;
  ActivityBuffers& operator=(const ActivityBuffers&) = delete;
  ~ActivityBuffers();

  /// Reserves addresses for all buffers; pages come when CUPTI writes to them. False where the
  /// system has none. Does nothing the second time.
  [[nodiscard]] bool reserve() noexcept;

  /// A buffer of zeroes, aligned to a page; empty where all are in use.
  [[nodiscard]] std::span<std::uint8_t> take() noexcept;
  /// Hands back a taken buffer, of which CUPTI filled `valid` bytes. Ignores any other.
  void complete(std::uint8_t* data, std::size_t valid) noexcept;

  /// Appends the buffers that were handed back since the last call, in that order.
  void collect(std::vector<Filled>& filled);
  /// After collect(): the buffer was read, and may be taken again.
  void give_back(const Filled& buffer) noexcept;

  /// How many times take() had none.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<bool> taken{false};
    std::uint64_t ticket = 0;  // order of completion; published by ready_
    std::size_t valid = 0;     // the same
  };
  [[nodiscard]] std::uint8_t* at(std::size_t slot) const noexcept {
    return memory_ + slot * kBytes;
  }

  std::uint8_t* memory_ = nullptr;
  std::array<Slot, kCount> slots_{};
  std::atomic<std::uint64_t> free_{0};   // a bit for each slot
  std::atomic<std::uint64_t> ready_{0};  // the same: completed, and not collected
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> refused_{0};
};
static_assert(ActivityBuffers::kCount == 64, "a bit for each in 64");

}  // namespace weir::timeline::cupti
