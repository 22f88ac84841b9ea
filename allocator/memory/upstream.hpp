#pragma once

/// @file
/// Where raw memory comes from. Implementations are the only code that asks a driver or the
/// operating system for memory. All are thread-safe; none may be called under a lock of ours.

#include <atomic>

#include "allocator/base/bytes.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/memory/page_source_on_demand.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// A source of raw memory.
class Upstream {
 public:
  Upstream() = default;
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  virtual ~Upstream() = default;

  /// `size` bytes aligned to kAlignment, or null when it has no room for them. Throws only for a
  /// fault that is not about room.
  [[nodiscard]] virtual void* allocate(Bytes size) = 0;

  /// Gives back what `allocate(size)` returned. The device must be done with it.
  virtual void deallocate(void* pointer, Bytes size) noexcept = 0;

  /// All that it could ever hand out.
  [[nodiscard]] virtual Bytes capacity() const = 0;

  /// What of it could be had now, as far as it knows: less than `capacity` where others, too, take
  /// from the same memory.
  [[nodiscard]] virtual Bytes available() const { return capacity(); }

  /// The same memory page by page, under the same capacity; null where it cannot be had that way.
  /// Always the same source, which lives as long as this; made when it is first asked for.
  [[nodiscard]] virtual PageSource* pages() noexcept { return nullptr; }

  /// What CUDA documents for cudaMalloc is 256; drivers give 512 (CUDA C++ Best Practices, 9.2.1).
  static constexpr std::size_t kAlignment = 512;
};

/// Bytes in use of a fixed capacity, taken by compare-and-swap: a request that does not fit never
/// shows up in the sum, so it cannot make a smaller one fail meanwhile.
class CapacityGauge {
 public:
  /// Nothing of `capacity` is in use.
  explicit CapacityGauge(Bytes capacity) noexcept : capacity_(capacity) {}
  /// Takes `size` if it fits; false, with nothing taken, if not.
  [[nodiscard]] bool take(Bytes size) noexcept;
  /// Takes as many of `count` pieces of `size` (not zero) as fit; how many.
  [[nodiscard]] std::size_t take_up_to(std::size_t count, Bytes size) noexcept;
  /// Gives back what `take` took.
  void give_back(Bytes size) noexcept { used_.fetch_sub(size.count, std::memory_order_relaxed); }
  [[nodiscard]] Bytes capacity() const noexcept { return capacity_; }  ///< as constructed
  /// In use now.
  [[nodiscard]] Bytes used() const noexcept { return {used_.load(std::memory_order_relaxed)}; }

 private:
  const Bytes capacity_;
  std::atomic<std::uint64_t> used_{0};
};

/// Host memory under a capacity: what the `cpu` device calls its device memory.
class HostUpstream final : public Upstream {
 public:
  /// At most `capacity` bytes are out at one time; nothing is set aside for them.
  explicit HostUpstream(Bytes capacity) noexcept : gauge_(capacity) {}
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Pages of a file in memory: see MemfdPages. Null where the system has no such files.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Out now.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  CapacityGauge gauge_;
  PageSourceOnDemand pages_;
};

/// Host memory under a capacity, in whole pages straight from the operating system. A program whose
/// malloc manages memory of its own by address can build on it; what malloc gave it could not.
class MappedUpstream final : public Upstream {
 public:
  /// At most `capacity` bytes at a time.
  explicit MappedUpstream(Bytes capacity) noexcept : gauge_(capacity) {}
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// As HostUpstream.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Bytes that are out now.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  CapacityGauge gauge_;
  PageSourceOnDemand pages_;
};

/// Addresses without memory behind them: pools can be driven at any scale on any machine. The
/// addresses are never handed out twice and must not be dereferenced.
class SimulatedUpstream final : public Upstream {
 public:
  /// At most `capacity` bytes are out at one time. Pages are of `page_size`, a power of two: as a
  /// GPU's, unless told.
  explicit SimulatedUpstream(Bytes capacity, Bytes page_size = mib(2)) noexcept
      : gauge_(capacity), page_size_(page_size) {}
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Numbers in place of pages.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Out now.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 private:
  CapacityGauge gauge_;
  const Bytes page_size_;
  std::atomic<std::uint64_t> next_address_{std::uint64_t{1} << 40U};
  PageSourceOnDemand pages_;
};

/// What a pool needs of a device: its raw memory and how far its streams have come.
struct DeviceMemory {
  Upstream& upstream;  ///< where blocks come from
  Progress& progress;  ///< when the device is done with them
};

}  // namespace weir
