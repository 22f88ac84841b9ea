#pragma once

// A device's budget, leased from a share that other processes have parts of: docs/share.md. The
// same rules as SharedBudget, over all pools of the device and what the driver served past them.

#include <atomic>
#include <cstdint>

#include "allocator/budget_source.hpp"
#include "allocator/share/share.hpp"
#include "tools/preload/context/device.hpp"

namespace weir::preload {

class Device;

/// Never destroyed; the kernel ends its part with the process. Thread-safe.
class DeviceShare final : public BudgetSource {
 public:
  /// Attaches. Throws UsageError.
  DeviceShare(Device& device, const ShareOptions& options) : device_(device), share_(options) {}

  bool make_room_for(Bytes more) noexcept override;
  bool raise_to(Bytes budget) noexcept override;
  void serve(BudgetUser* /*user*/) noexcept override {}

  /// Returns what is not needed, if others want it. Often called; looks only now and then.
  void return_wanted(std::chrono::nanoseconds most) noexcept;
  [[nodiscard]] Bytes lease() const noexcept { return share_.lease(); }

 private:
  /// Sets the account's budget while the last of the device's contexts starts no batch.
  class Limit;

  [[nodiscard]] bool raise(Bytes budget, Share::Effort effort) noexcept;
  /// Sets the budget to what is needed of the lease. Throws std::bad_alloc.
  void lower_budget();

  Device& device_;
  Share share_;
  std::atomic<std::int64_t> next_look_{0};  ///< on the steady clock, in nanoseconds
  std::atomic<std::int64_t> refused_{0};    ///< when a raise was last refused; 0: no wish is left
};

}  // namespace weir::preload
