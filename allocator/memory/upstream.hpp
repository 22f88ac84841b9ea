#pragma once

/// @file
/// Where raw memory comes from. Only implementations of this and of page_source.hpp get memory from
/// a driver or the operating system. All are thread-safe. Call none under a lock of ours, except
/// `begin_release` and `end_release`.

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/base/log.hpp"
#include "allocator/memory/page_source.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

// An upstream's page source, made on first use: most pools never need one, and making one opens a
// file or calls a driver.

/// Thread-safe.
class PageSourceOnDemand {
 public:
  /// Returns what `make()` gave the first time, a unique pointer to a PageSource. Returns null if
  /// that was null or threw, which is logged.
  template <typename Make>
  [[nodiscard]] PageSource* get(const Make& make) noexcept {
    std::call_once(once_, [&]() noexcept {
      try {
        source_ = make();
        there_.store(source_.get(), std::memory_order_release);
      } catch (const std::exception& error) {
        log(LogLevel::kError, std::string("memory cannot be mapped page by page: ") + error.what());
      }
    });
    return source_.get();
  }
  /// Returns what `get` gave, or null before its first call.
  [[nodiscard]] PageSource* get_if_any() const noexcept {
    return there_.load(std::memory_order_acquire);
  }

 private:
  std::once_flag once_;
  std::unique_ptr<PageSource> source_;
  std::atomic<PageSource*> there_{nullptr};
};

/// A source of raw memory.
class Upstream {
 public:
  Upstream() = default;
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  virtual ~Upstream() = default;

  /// Allocates `size` bytes aligned to kAlignment. Returns null if there is no room. Throws only
  /// for other faults.
  [[nodiscard]] virtual void* allocate(Bytes size) = 0;

  /// Returns whether a `deallocate` now would not wait for the device. Does not wait itself.
  [[nodiscard]] virtual bool may_release() noexcept { return true; }

  /// Gives back what `allocate(size)` returned. The device must be done with it.
  virtual void deallocate(void* pointer, Bytes size) noexcept = 0;

  /// Called when memory, pages too, begins its way back, and once all of it is back. In between,
  /// requests of others who share the memory may wait for it. Takes only a leaf lock, and calls
  /// nobody: a pool calls it under its own lock.
  virtual void begin_release() noexcept {}
  /// See `begin_release`.
  virtual void end_release() noexcept {}

  /// Returns the most bytes that it can hand out.
  [[nodiscard]] virtual Bytes capacity() const = 0;

  /// Returns the bytes available now, as far as known: others may use the same memory.
  [[nodiscard]] virtual Bytes available() const { return capacity(); }

  /// Returns the same memory page by page, under the same capacity; null if not supported. Made by
  /// the first call. Lives as long as this.
  [[nodiscard]] virtual PageSource* pages() noexcept { return nullptr; }

  /// CUDA documents 256 for cudaMalloc; drivers give 512 (CUDA C++ Best Practices, 9.2.1).
  static constexpr std::size_t kAlignment = 512;
};

/// Bytes in use of a fixed capacity, taken by compare-and-swap: a request that does not fit is
/// never in the sum, so it cannot make a smaller one fail.
class CapacityGauge {
 public:
  /// Starts with nothing in use.
  explicit CapacityGauge(Bytes capacity) noexcept : capacity_(capacity) {}
  /// Takes `size` if it fits; otherwise takes nothing and returns false.
  [[nodiscard]] bool take(Bytes size) noexcept;
  /// Takes as many of `count` pieces of `size` (not zero) as fit. Returns how many.
  [[nodiscard]] std::size_t take_up_to(std::size_t count, Bytes size) noexcept;
  /// Undoes `take`.
  void withdraw(Bytes size) noexcept { used_.fetch_sub(size.count, std::memory_order_relaxed); }
  [[nodiscard]] Bytes capacity() const noexcept { return capacity_; }  ///< as constructed
  /// Returns the bytes in use.
  [[nodiscard]] Bytes used() const noexcept { return {used_.load(std::memory_order_relaxed)}; }

 private:
  const Bytes capacity_;
  std::atomic<std::uint64_t> used_{0};
};

/// Host memory under a capacity.
class HostMemoryUpstream : public Upstream {
 public:
  [[nodiscard]] Bytes capacity() const override { return gauge_.capacity(); }
  /// Returns pages of a file in memory (MemfdPages), or null if the system has no such files.
  [[nodiscard]] PageSource* pages() noexcept override;
  /// Returns the bytes in use.
  [[nodiscard]] Bytes used() const noexcept { return gauge_.used(); }

 protected:
  /// Hands out at most `capacity` bytes at a time.
  explicit HostMemoryUpstream(Bytes capacity) noexcept : gauge_(capacity) {}

  CapacityGauge gauge_;  ///< bytes in use under the capacity

 private:
  PageSourceOnDemand pages_;
};

/// The device memory of the `cpu` device.
class HostUpstream final : public HostMemoryUpstream {
 public:
  /// Hands out at most `capacity` bytes at a time; reserves none.
  explicit HostUpstream(Bytes capacity) noexcept : HostMemoryUpstream(capacity) {}
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
};

/// Host memory in whole pages from the operating system, for programs whose malloc manages memory
/// by address: they cannot build on malloc's.
class MappedUpstream final : public HostMemoryUpstream {
 public:
  /// Hands out at most `capacity` bytes at a time.
  explicit MappedUpstream(Bytes capacity) noexcept : HostMemoryUpstream(capacity) {}
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
};

/// Addresses without memory, to drive pools at any scale on any machine. Never handed out twice.
/// Must not be dereferenced.
class SimulatedUpstream final : public Upstream {
 public:
  /// Hands out at most `capacity` bytes at a time. `page_size` is a power of two, a GPU's by
  /// default.
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

/// What a pool needs of a device: raw memory, and how far its streams have come.
struct DeviceMemory {
  Upstream& upstream;  ///< where blocks come from
  Progress& progress;  ///< whether the device is done with them
};

}  // namespace weir
