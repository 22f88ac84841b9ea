#pragma once

// One device's budget: what its contexts' pools took from the driver, and what the driver served
// outside them. The only place that decides whether memory is within the budget.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/budget_source.hpp"
#include "tools/preload/context/kinds.hpp"
#include "tools/preload/summary/summary.hpp"

namespace weir::preload {

/// Why a request found no memory.
enum class Refusal : std::uint8_t {
  kNone,    ///< it was served
  kBudget,  ///< the budget has no room
  kDevice,  ///< the budget has room, the device has none
  kOther,   ///< another fault, which room does not mend
};

/// Thread-safe.
class Account {
 public:
  Account(int device, Bytes total, Bytes budget) noexcept
      : device_(device), total_(total), budget_(budget.count), limit_(total.count) {}
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] Bytes total() const noexcept { return total_; }
  [[nodiscard]] Bytes budget() const noexcept { return {std::min(budget_.load(), limit_.load())}; }
  /// Sets the budget, at most the total. Bytes taken stay taken, even above it.
  void set_budget(Bytes budget) noexcept { budget_.store(budget.count); }
  /// Sets a limit beside it, at most the total. The lower one is the budget.
  void set_limit(Bytes limit) noexcept { limit_.store(limit.count); }
  /// Call after the budget was raised and the pools know it.
  void note_raise() noexcept { raises_.fetch_add(1); }
  [[nodiscard]] const std::atomic<std::uint64_t>& raises() const noexcept { return raises_; }
  /// Where more budget comes from, or null. Set before other threads know the account.
  void draw_from(BudgetSource* source) noexcept { source_ = source; }
  [[nodiscard]] BudgetSource* source() const noexcept { return source_; }
  /// Returns the bytes taken, which exceed the budget if requests that may not be refused took
  /// more.
  [[nodiscard]] Bytes used() const noexcept {
    return {used_.load()};
  }  // in one order: see take_up_to

  void withdraw(Bytes bytes) noexcept { used_.fetch_sub(bytes.count, std::memory_order_relaxed); }
  /// Takes `bytes` even if they do not fit: the device has already served them.
  void charge(Bytes bytes) noexcept { used_.fetch_add(bytes.count, std::memory_order_relaxed); }

  /// Takes `count` pieces of `size`, or as many as fit, until the driver has said how many it
  /// gives.
  class Claim {
   public:
    Claim(Account& account, std::size_t count, Bytes size) noexcept
        : account_(account), size_(size), count_(account.claim(count, size)) {}
    /// Withdraws the pieces that were not kept.
    ~Claim() {
      if (count_ != 0) account_.end_claim(size_ * count_, size_ * (count_ - kept_));
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Keeps `count` pieces, which the driver gave.
    void keep(std::size_t count) noexcept { kept_ = count; }

   private:
    Account& account_;
    const Bytes size_;
    const std::size_t count_;
    std::size_t kept_ = 0;
  };
  /// Marks that memory of the budget is on its way back to the driver, until `end_release`. The
  /// bytes are withdrawn meanwhile.
  void begin_release() noexcept;
  void end_release() noexcept;
  /// Both, around a scope.
  class Releasing {
   public:
    explicit Releasing(Account& account) noexcept : account_(account) { account_.begin_release(); }
    ~Releasing() { account_.end_release(); }
    Releasing(const Releasing&) = delete;
    Releasing& operator=(const Releasing&) = delete;

   private:
    Account& account_;
  };
  /// How often other requests' memory came back to the budget, and to the device.
  struct Returned {
    std::uint64_t to_budget = 0;  ///< claims that ended, and releases
    std::uint64_t to_device = 0;  ///< releases
  };
  [[nodiscard]] Returned returned() const noexcept {
    return {returned_to_budget_.load(), returned_to_device_.load()};
  }
  /// Call if a request was refused that began at `before`. Returns true if memory has come back to
  /// what lacked it since then. Waits for claims or releases under way, until `until`.
  [[nodiscard]] bool await_returned(Refusal refusal, Returned before,
                                    std::chrono::steady_clock::time_point until) noexcept;
  /// Returns whether `bytes` do not fit beside allocated and passed memory, which no submitted work
  /// frees. `kept` is what pools keep of what is used. Ignores open claims.
  [[nodiscard]] bool is_hopeless(Bytes bytes, Bytes kept) const noexcept;
  /// Returns how much the budget lacks for `bytes`.
  [[nodiscard]] Bytes missing(Bytes bytes) const noexcept {
    return minus_or_zero(used() + bytes, budget());
  }

  /// Adds memory of `kind` served outside the pools. If it counts, a claim or `charge` has
  /// its bytes.
  void add_passed(Kind kind, Bytes bytes);
  void remove_passed(Kind kind, Bytes bytes) noexcept;
  /// Sets the level of `kind` to the driver's figure. Returns how much lower it is than before.
  Bytes set_passed(Kind kind, Bytes bytes) noexcept;
  /// Returns the sum over all kinds that count.
  [[nodiscard]] Bytes passed() const;
  [[nodiscard]] std::vector<Passed> passed_kinds() const;

 private:
  [[nodiscard]] std::size_t claim(std::size_t count, Bytes size) noexcept;
  void end_claim(Bytes claimed, Bytes withdrawn) noexcept;
  /// Takes as many of `count` pieces of `size` (not zero) as fit. Returns how many.
  [[nodiscard]] std::size_t take_up_to(std::size_t count, Bytes size) noexcept;

  const int device_;
  const Bytes total_;
  std::atomic<std::uint64_t> budget_;
  std::atomic<std::uint64_t> limit_;
  BudgetSource* source_ = nullptr;
  std::atomic<std::uint64_t> raises_{0};
  std::atomic<std::uint64_t> used_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::array<Passed, kKinds> kinds_ WEIR_GUARDED_BY(mutex_){};
  Bytes claimed_ WEIR_GUARDED_BY(mutex_);               ///< part of `used_`, by open claims
  std::uint64_t claims_ WEIR_GUARDED_BY(mutex_) = 0;    ///< open ones
  std::uint64_t releases_ WEIR_GUARDED_BY(mutex_) = 0;  ///< open ones
  std::atomic<std::uint64_t> returned_to_budget_{0};    // changed under the lock
  std::atomic<std::uint64_t> returned_to_device_{0};
  std::condition_variable_any something_returned_;
};

}  // namespace weir::preload
