#pragma once

// One device of the process: its account, its contexts, and how memory and budget move between
// them.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/preload/context/account.hpp"
#include "tools/preload/context/context_gate.hpp"
#include "tools/preload/context/own_memory.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/timeline/live/block.hpp"

namespace weir {
class Pool;
}  // namespace weir

namespace weir::preload {

class Arena;
class DeviceShare;

/// Work after which a pool of `owner` can release more memory.
struct Release {
  Arena* owner = nullptr;
  Point point;
};

/// What a program is told of a device's memory.
struct BudgetView {
  Bytes total;  ///< the budget, or the device's total if smaller
  Bytes free;   ///< at most what the device could give
  Bytes held;   ///< by this program: without cached memory and frees that await the device
};

/// Returns the budget that the settings ask for of `total`. Throws UsageError.
[[nodiscard]] Bytes budget_of(const Settings& settings, Bytes total);

/// Never destroyed. Thread-safe; call without a lock of ours.
class Device {
 public:
  Device(const Driver& driver, const Settings& settings, ContextGate& gate, int number,
         Bytes total);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] int number() const noexcept { return account_.device(); }
  [[nodiscard]] Account& account() noexcept { return account_; }
  [[nodiscard]] const Account& account() const noexcept { return account_; }
  [[nodiscard]] OwnMemory& own() noexcept { return own_; }
  [[nodiscard]] ContextGate& gate() noexcept { return gate_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

  /// A context's arena, which gets the current budget even if that was set during its creation.
  void add(Arena& arena);
  void remove(Arena& arena);
  [[nodiscard]] std::vector<Arena*> arenas() const;
  /// Whether it has or had an arena.
  [[nodiscard]] bool was_used() const noexcept { return used_.load(); }

  /// Counts a request that the pools have served.
  void note_served(Bytes bytes) noexcept {
    served_calls_.fetch_add(1, std::memory_order_relaxed);
    served_.fetch_add(bytes.count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t served_calls() const noexcept { return served_calls_.load(); }
  [[nodiscard]] Bytes served() const noexcept { return {served_.load()}; }

  // Room for requests. Arenas with a captured stream are left out: nothing of theirs can be
  // released or waited for.

  /// Returns whether no work that is submitted could make room for `bytes`. `drains`: it may be
  /// waited for, also for what is freed into the program's own pools.
  [[nodiscard]] bool is_hopeless(Bytes bytes, bool drains) const noexcept;
  /// Returns what the pools keep unused, except the pool `but`.
  [[nodiscard]] Bytes kept(const Pool* but = nullptr) const;
  /// Returns the most of that which `trim` could release, given how far the device has come.
  [[nodiscard]] Bytes spare(const Pool* but = nullptr);
  /// Releases up to `need` of it, and returns how much: without `may_release` what needs no wait
  /// for the device (Upstream::may_release). Needs a turn of the gate.
  Bytes trim(Bytes need, bool may_release, const Pool* but = nullptr);
  /// Waits until the device has passed what is enqueued now, so that all may be released.
  [[nodiscard]] bool settle(const WaitLimit& limit) const;
  /// Returns the oldest work after which a pool can release more.
  [[nodiscard]] std::optional<Release> oldest_release() const;

  // The budget.

  /// Sets the budget, from kLeastBudget to the total. Cached memory above it goes back to the
  /// driver at once, allocated memory as it is freed. `by` names the requester in the log.
  [[nodiscard]] timeline::BudgetAnswer set_budget(Bytes budget, std::string_view by) noexcept;
  /// Limits the budget to a share of the total, 0 to 1, besides what set_budget sets; below
  /// kLeastBudget, to that. The lower one is the budget.
  [[nodiscard]] timeline::BudgetAnswer set_fraction(double fraction, std::string_view by) noexcept;
  /// Releases what was freed above a lowered budget, and what other processes want of a share.
  void keep_budget(std::chrono::nanoseconds most = {}) noexcept;
  /// Returns to a share what other processes want of it. Often called, also where nothing is freed:
  /// with WEIR_PUBLISH=0 no thread looks.
  void keep_share(std::chrono::nanoseconds most = {}) noexcept;
  /// Releases cached memory above the budget, and what comes free until it is within.
  void trim_to_budget(std::chrono::nanoseconds most) noexcept;
  /// Returns the view for `free` of `total` bytes. Throws what pools throw.
  [[nodiscard]] BudgetView view(Bytes free, Bytes total) const;
  /// The budget and those of the arenas change together.
  [[nodiscard]] Mutex& budget_mutex() noexcept { return budget_mutex_; }
  /// Makes the arenas follow the account's budget. Needs `budget_mutex`.
  void follow_budget();

  /// Returns whether pools release freed memory until a lowered budget is met.
  [[nodiscard]] bool trims_what_comes_free() const noexcept { return trims_; }
  /// Takes a part of the share that the settings name. Call before other threads know the device.
  /// `meanwhile` runs while others are waited for. Throws UsageError.
  void attach(std::function<void()> meanwhile);

 private:
  template <typename Change>
  [[nodiscard]] timeline::BudgetAnswer change_budget(std::string_view by,
                                                     const Change& change) noexcept;
  [[nodiscard]] timeline::BudgetAnswer answer(timeline::BudgetCode code) const noexcept;
  /// Waits for another thread that trims now for at most `most`, or leaves it to that thread.
  void trim_above(std::chrono::nanoseconds most) noexcept;

  const Settings& settings_;
  ContextGate& gate_;
  Account account_;
  OwnMemory own_;
  std::unique_ptr<DeviceShare> share_;
  std::atomic<bool> used_{false};
  /// Whether pools release freed memory. In one order with the budget: trim_to_budget.
  std::atomic<bool> trims_{false};
  std::atomic<std::uint64_t> served_calls_{0};
  std::atomic<std::uint64_t> served_{0};
  Mutex budget_mutex_{LockRank::kSources};
  mutable Mutex mutex_{LockRank::kOrder};
  std::vector<Arena*> arenas_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
