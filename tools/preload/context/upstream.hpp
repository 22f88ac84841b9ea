#pragma once

// Device memory of one context, under the budget of its device.

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

/// How long a free of an address that the driver is taking back waits for the driver.
inline constexpr std::chrono::seconds kMostOfAReturn{1};

/// What is given back while a stream of the context is captured goes to the driver after that.
class DriverUpstream final : public Upstream {
 public:
  DriverUpstream(const Driver& driver, CUcontext context, Account& account,
                 const Fences& fences) noexcept
      : driver_(driver), context_(context), account_(account), fences_(fences) {}
  /// Null where the budget or the device has no more; DriverError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  /// The device's: the budget may be raised to it, and `Account::take` holds what is in force.
  [[nodiscard]] Bytes capacity() const override { return account_.total(); }
  /// Null where the driver or the device has no virtual memory management.
  [[nodiscard]] ContextPages* pages() noexcept override;
  /// Whether `pointer` is an address of its pages.
  [[nodiscard]] bool is_paged(CUdeviceptr pointer) const noexcept {
    const ContextPages* const pages = pages_if_any();
    return pages != nullptr && pages->has(pointer);
  }
  /// Whether the driver had no memory when it was asked last.
  [[nodiscard]] bool refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  /// Work on `device` may use its pages, now and later.
  void allow(int device) noexcept;
  /// Whether something was not given back since a capture was under way.
  [[nodiscard]] bool holds() const noexcept;
  /// No capture is under way any more: gives back what was held.
  void give_back_held() noexcept;
  /// The size of what `allocate` gave at `pointer` and nobody gave back; nothing if it did not.
  [[nodiscard]] std::optional<Bytes> given(const void* pointer) const noexcept;
  /// Whether `address` lies in what `allocate` gave and nobody gave back, or in addresses reserved
  /// for pages. Waits, for a bounded time, where the driver is taking it back just now.
  [[nodiscard]] bool serves(CUdeviceptr address) const noexcept;
  /// What it gave at `pointer` is somebody else's to give back and to count.
  void let_go(const void* pointer, Bytes size) noexcept;
  /// The context is gone, and all that it gave.
  void forget() noexcept;

 private:
  struct Answer {
    void* memory = nullptr;
    /// The driver had no room: how many claims and returns of the account had ended by then.
    std::optional<std::uint64_t> refused{};
  };
  [[nodiscard]] Answer allocate_once(Bytes size);
  void hold(void* pointer, Bytes size) noexcept;
  /// Has the driver free it. What it refuses stays given.
  [[nodiscard]] CUresult give_back(void* pointer, Bytes size) noexcept;
  /// False where the host's memory is full.
  bool note(const void* pointer, Bytes size) noexcept;
  [[nodiscard]] ContextPages* pages_if_any() const noexcept {
    return static_cast<ContextPages*>(pages_.get_if_any());
  }

  const Driver& driver_;
  const CUcontext context_;
  Account& account_;
  const Fences& fences_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<bool> gone_{false};
  std::atomic<bool> refused_{false};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<std::pair<void*, Bytes>> held_ WEIR_GUARDED_BY(mutex_);
  std::map<const void*, Bytes> given_ WEIR_GUARDED_BY(mutex_);
  std::multimap<const void*, Bytes> returning_
      WEIR_GUARDED_BY(mutex_);                    ///< the driver is freeing it
  mutable std::condition_variable_any returned_;  ///< it has freed one
  PageSourceOnDemand pages_;
};

}  // namespace weir::preload
