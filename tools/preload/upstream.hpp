#pragma once

// Device memory of one context, under the budget of its device.

#include <atomic>
#include <utility>
#include <vector>

#include "allocator/upstream.hpp"
#include "tools/preload/account.hpp"
#include "tools/preload/fences.hpp"

namespace weir::preload {

/// What is given back while a stream of the context is captured goes to the driver after that.
class DriverUpstream final : public Upstream {
 public:
  DriverUpstream(const Driver& driver, CUcontext context, Account& account,
                 const Fences& fences) noexcept
      : driver_(driver), context_(context), account_(account), fences_(fences) {}
  /// Null where the budget or the device has no more; DriverError for any other fault.
  [[nodiscard]] void* allocate(Bytes size) override;
  void deallocate(void* pointer, Bytes size) noexcept override;
  [[nodiscard]] Bytes capacity() const override { return account_.budget(); }
  /// No capture is under way any more: gives back what was held.
  void give_back_held() noexcept;
  /// `size` bytes that it gave are somebody else's to give back and to count.
  void let_go(Bytes size) noexcept;
  /// The context is gone, and all that it gave.
  void forget() noexcept;

 private:
  void hold(void* pointer, Bytes size) noexcept;

  const Driver& driver_;
  const CUcontext context_;
  Account& account_;
  const Fences& fences_;
  std::atomic<std::uint64_t> used_{0};
  std::atomic<bool> gone_{false};
  Mutex mutex_{LockRank::kLeaf};
  std::vector<std::pair<void*, Bytes>> held_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
