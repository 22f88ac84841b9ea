#pragma once

// Device memory of one context, under the device's budget.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/memory/upstream.hpp"
#include "tools/preload/context/account.hpp"
#include "tools/preload/context/fences.hpp"
#include "tools/preload/context/pages.hpp"

namespace weir::preload {

/// How long a free waits while the driver is taking its address back.
inline constexpr std::chrono::seconds kMostOfAReturn{1};

/// Memory released while a stream of the context is captured goes to the driver after the capture.
class DriverUpstream final : public Upstream {
 public:
  DriverUpstream(const Driver& driver, CUcontext context, Account& account, Fences& fences) noexcept
      : driver_(driver), context_(context), account_(account), fences_(fences) {}
  /// Returns null if the budget or the device has no more. Throws DriverError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  /// Returns what the driver takes for `size`.
  [[nodiscard]] static Bytes charged(Bytes size) noexcept {
    return Bytes{kAlignment} * ((size.count + kAlignment - 1) / kAlignment);
  }
  [[nodiscard]] bool may_release() noexcept override;
  /// Waits until the device has passed all work that is enqueued now: the driver's `cuMemFree`
  /// waits for it, without a limit, and it may wait for this thread. Returns false if it has not,
  /// or during a capture.
  [[nodiscard]] bool settle(const WaitLimit& limit) noexcept;
  /// Call between `begin_release` and `end_release`.
  void deallocate(void* pointer, Bytes size) noexcept override;
  void begin_release() noexcept override { account_.begin_release(); }
  void end_release() noexcept override { account_.end_release(); }
  /// Returns the device's total: the budget may be raised to it, and `Account::Claim` enforces the
  /// current one.
  [[nodiscard]] Bytes capacity() const override { return account_.total(); }
  /// Returns null if the driver or the device lacks virtual memory management.
  [[nodiscard]] ContextPages* pages() noexcept override;
  [[nodiscard]] bool is_paged(CUdeviceptr pointer) const noexcept {
    const ContextPages* const pages = pages_if_any();
    return pages != nullptr && pages->has(pointer);
  }
  /// Lets work on `device` use its pages, now and later.
  void allow(int device) noexcept;
  /// Returns whether memory is kept because of a capture.
  [[nodiscard]] bool holds() const noexcept;
  /// Returns how much is kept.
  [[nodiscard]] Bytes held() const noexcept;
  /// Call when no capture is in progress: releases the kept memory, pages only without
  /// `may_release`.
  void release_held(bool may_release) noexcept;
  /// Returns the size of the allocation at `pointer`, or nullopt.
  [[nodiscard]] std::optional<Bytes> given(const void* pointer) const noexcept;
  /// Returns whether `address` lies in an allocation or in addresses reserved for pages. While the
  /// driver takes it back, waits for a bounded time.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept;
  /// Stops counting the allocation at `pointer`, which has another owner now.
  void disown(const void* pointer, Bytes size) noexcept;
  /// Drops the context and its allocations.
  void forget() noexcept;

 private:
  void hold(void* pointer, Bytes size) noexcept;
  /// Frees it in the driver. If the driver refuses, it stays allocated.
  [[nodiscard]] CUresult release(void* pointer, Bytes size) noexcept;
  /// Returns false if host memory is full.
  bool note(const void* pointer, Bytes size) noexcept;
  [[nodiscard]] ContextPages* pages_if_any() const noexcept {
    return static_cast<ContextPages*>(pages_.get_if_any());
  }

  const Driver& driver_;
  const CUcontext context_;
  Account& account_;
  Fences& fences_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> asked_{0};  ///< the point of `may_release` that the device passes next
  std::atomic<bool> gone_{false};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<std::pair<void*, Bytes>> held_ WEIR_GUARDED_BY(mutex_);
  std::map<const void*, Bytes> given_ WEIR_GUARDED_BY(mutex_);
  std::multimap<const void*, Bytes> returning_
      WEIR_GUARDED_BY(mutex_);                    ///< the driver is freeing it
  mutable std::condition_variable_any returned_;  ///< it has freed one
  PageSourceOnDemand pages_;
};

}  // namespace weir::preload
