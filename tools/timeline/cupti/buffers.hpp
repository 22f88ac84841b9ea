#pragma once

// The buffers for CUPTI's records. CUPTI requests and returns them under its own lock, from any
// thread, so nothing here locks, allocates or waits.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::timeline::cupti {

/// A fixed number of buffers. Any thread may call take() and complete() at any time; only one
/// thread at a time may call the other functions.
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

  /// Reserves addresses for all buffers; CUPTI's writes allocate the pages. Returns false if the
  /// system refuses. Does nothing the second time.
  [[nodiscard]] bool reserve() noexcept;

  /// Returns a zeroed, page-aligned buffer; empty if all are in use.
  [[nodiscard]] std::span<std::uint8_t> take() noexcept;
  /// Returns a taken buffer, of which CUPTI filled `valid` bytes. Ignores other pointers.
  void complete(std::uint8_t* data, std::size_t valid) noexcept;

  /// Appends the buffers completed since the last call, in that order.
  void collect(std::vector<Filled>& filled);
  /// Makes a buffer available again after collect() and reading.
  void give_back(const Filled& buffer) noexcept;

  /// The number of times that take() had no buffer.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::atomic<bool> taken{false};
    std::uint64_t ticket = 0;  // order of completion; published by ready_
    std::size_t valid = 0;     // likewise
  };
  [[nodiscard]] std::uint8_t* at(std::size_t slot) const noexcept {
    return memory_ + slot * kBytes;
  }

  std::uint8_t* memory_ = nullptr;
  std::array<Slot, kCount> slots_{};
  std::atomic<std::uint64_t> free_{0};   // one bit per slot
  std::atomic<std::uint64_t> ready_{0};  // one bit per slot: completed, not collected
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> refused_{0};
};
static_assert(ActivityBuffers::kCount == 64, "a bit for each in 64");

/// The process's own. Never destroyed, because CUPTI may call from its own thread at any time.
[[nodiscard]] ActivityBuffers& activity_buffers();

}  // namespace weir::timeline::cupti
