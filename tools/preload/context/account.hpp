#pragma once

// One device's budget: what its contexts' pools took from the driver, and what the driver served
// outside them.

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/names.hpp"
#include "allocator/budget_source.hpp"
#include "allocator/progress/progress.hpp"
#include "tools/preload/summary/summary.hpp"

namespace weir::preload {

/// Kinds of memory that the driver serves outside the pools.
enum class Kind : std::uint8_t {
  kArrays,    ///< arrays and mipmaps
  kMappable,  ///< cuMemCreate: memory to map into reserved addresses
  kPools,     ///< from a pool that the program made
  kGraphs,    ///< reserved by captured graphs
  kModules,   ///< code and its variables
  kContexts,  ///< memory of CUDA itself
  kShared,    ///< given to other processes
  kDirect,    ///< cuMemAlloc served outside the pool
  kManaged,   ///< migrates between host and device: not against the budget, never refused
  kHost,      ///< page-locked host memory: not against the budget
  kSpilled,   ///< host memory given for device memory (WEIR_SPILL): not against the budget
};
[[nodiscard]] constexpr auto names_of(Kind /*of*/) noexcept {
  return name_table("arrays", "mappable", "pools", "graphs", "modules", "contexts", "shared",
                    "direct", "managed", "host", "spilled");
}
inline constexpr std::size_t kKinds = names_of(Kind{}).size();
/// Returns whether this kind is only device memory, so that it counts against the budget.
[[nodiscard]] constexpr bool counts(Kind kind) noexcept {
  return kind != Kind::kManaged && kind != Kind::kHost && kind != Kind::kSpilled;
}

class Account;
class Arena;

/// Work after which a pool of `owner` can give back more memory.
struct Release {
  Arena* owner = nullptr;
  Point point;
};

/// The other pools of a device, for a pool that runs out of budget. Thread-safe; call without a
/// lock.
class Neighbours {
 public:
  /// Makes pools give back up to `need` cached bytes, except the pool that the calling thread is
  /// asking. Returns how much. With `if_enough`, gives nothing if they cache less.
  virtual Bytes reclaim(const Account& account, Bytes need, bool if_enough) noexcept = 0;
  /// Returns the oldest work after which a pool can give back more, or nullopt.
  [[nodiscard]] virtual std::optional<Release> oldest_release(
      const Account& account) const noexcept = 0;
  /// Returns what pools took from the driver and have not allocated.
  [[nodiscard]] virtual Bytes not_in_use(const Account& account) const noexcept = 0;
  /// Returns how much longer the thread's request may wait for other threads.
  [[nodiscard]] virtual std::chrono::nanoseconds patience() const noexcept = 0;

 protected:
  ~Neighbours() = default;
};

/// Thread-safe.
class Account {
 public:
  /// `neighbours` is null if there are no other pools to ask.
  Account(int device, Bytes total, Bytes budget, Neighbours* neighbours = nullptr) noexcept
      : device_(device),
        total_(total),
        budget_(budget.count),
        limit_(total.count),
        neighbours_(neighbours) {}
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] Bytes total() const noexcept { return total_; }
  [[nodiscard]] Bytes budget() const noexcept { return {std::min(budget_.load(), limit_.load())}; }
  /// Sets the budget, at most the total. Bytes taken stay taken, even above it.
  void set_budget(Bytes budget) noexcept { budget_.store(budget.count); }
  /// Sets a limit beside it, at most the total. The lower one is the budget.
  void set_limit(Bytes limit) noexcept { limit_.store(limit.count); }
  /// Call after the budget was raised and the pools know it.
  void note_raise() noexcept { raises_.fetch_add(1); }
  [[nodiscard]] std::uint64_t raises() const noexcept { return raises_.load(); }
  /// Returns whether pools give freed memory back until `used` is within a lowered budget.
  [[nodiscard]] bool gives_back() const noexcept {
    return gives_back_.load(std::memory_order_relaxed);
  }
  void give_back_what_comes_free(bool on) noexcept {
    gives_back_.store(on);  // in one order with the budget: Process::give_back
  }
  /// Where more budget comes from, or null. Set before other threads know the account.
  void draw_from(BudgetSource* source) noexcept { source_ = source; }
  [[nodiscard]] BudgetSource* source() const noexcept { return source_; }
  /// Returns the bytes taken, which exceed the budget if requests that may not be refused took
  /// more.
  [[nodiscard]] Bytes used() const noexcept { return {used_.load()}; }  // in one order: see take

  /// Takes `bytes` if they fit; otherwise takes nothing and returns false.
  [[nodiscard]] bool take(Bytes bytes) noexcept;

  /// Takes `count` pieces of `size` (not zero), or as many as fit, until the driver has said how
  /// many it gives. If they do not fit, makes pools give memory back and, while the request has
  /// patience, waits for other threads' claims and returns.
  class Claim {
   public:
    Claim(Account& account, std::size_t count, Bytes size) noexcept
        : account_(account), size_(size), count_(account.claim(count, size)) {}
    /// Gives back the pieces that were not kept.
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
  /// Marks that memory of the budget is on its way back to the driver, until `end_return`. The
  /// bytes are returned meanwhile.
  void begin_return() noexcept;
  void end_return() noexcept;
  /// Both, around a scope.
  class Return {
   public:
    explicit Return(Account& account) noexcept : account_(account) { account_.begin_return(); }
    ~Return() { account_.end_return(); }
    Return(const Return&) = delete;
    Return& operator=(const Return&) = delete;

   private:
    Account& account_;
  };
  /// Returns how many claims and returns have ended.
  [[nodiscard]] std::uint64_t moves_ended() const noexcept {
    const Lock lock(mutex_);
    return moves_ended_;
  }
  /// Makes pools give memory back for `bytes` that the device had no room for at `moves_ended() ==
  /// ended`. Returns true if asking the device again may help: pools gave something back, or
  /// another claim or return has ended. Waits for those under way. Returns false at once if
  /// hopeless.
  [[nodiscard]] bool reclaim(Bytes bytes, std::uint64_t ended) noexcept;
  /// See Neighbours.
  [[nodiscard]] std::optional<Release> oldest_release() const noexcept {
    return neighbours_ != nullptr ? neighbours_->oldest_release(*this) : std::nullopt;
  }
  /// Returns whether `bytes` do not fit beside allocated and passed memory, which no submitted work
  /// frees. Ignores open claims.
  [[nodiscard]] bool is_hopeless(Bytes bytes) const noexcept;
  void give_back(Bytes bytes) noexcept { used_.fetch_sub(bytes.count, std::memory_order_relaxed); }

  /// Takes `bytes` even if they do not fit: the device has already served them.
  void charge(Bytes bytes) noexcept { used_.fetch_add(bytes.count, std::memory_order_relaxed); }

  /// Adds memory of `kind` served outside the pools. If it counts, `take` or `charge` has its
  /// bytes.
  void add_passed(Kind kind, Bytes bytes);
  void remove_passed(Kind kind, Bytes bytes) noexcept;
  /// Sets the level of `kind` to the driver's figure.
  void set_passed(Kind kind, Bytes bytes);
  /// Returns the sum over all kinds that count.
  [[nodiscard]] Bytes passed() const;
  [[nodiscard]] std::vector<Passed> passed_kinds() const;

  /// Call once graphs have their own memory here.
  void use_graphs() noexcept { graphs_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool uses_graphs() const noexcept { return graphs_.load(); }

  void note_served(Bytes bytes) noexcept {
    served_calls_.fetch_add(1, std::memory_order_relaxed);
    served_.fetch_add(bytes.count, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t served_calls() const noexcept { return served_calls_.load(); }
  [[nodiscard]] Bytes served() const noexcept { return {served_.load()}; }

 private:
  [[nodiscard]] std::size_t claim(std::size_t count, Bytes size) noexcept;
  void end_claim(Bytes claimed, Bytes given_back) noexcept;
  /// Takes as many of `count` pieces of `size` (not zero) as fit. Returns how many.
  [[nodiscard]] std::size_t take_up_to(std::size_t count, Bytes size) noexcept;
  /// Returns whether to try again to take `bytes`, which did not fit when `ended` moves had ended.
  [[nodiscard]] bool await_room(Bytes bytes, std::uint64_t ended) noexcept;
  /// Waits until a claim or return ends, if any is open. Returns whether more than `ended` have.
  [[nodiscard]] bool await_move(std::uint64_t ended) noexcept;
  /// Returns how much the budget lacks for `bytes`.
  [[nodiscard]] Bytes missing(Bytes bytes) const noexcept {
    return minus_or_zero(used() + bytes, budget());
  }

  const int device_;
  const Bytes total_;
  std::atomic<std::uint64_t> budget_;
  std::atomic<std::uint64_t> limit_;
  Neighbours* const neighbours_;
  BudgetSource* source_ = nullptr;
  std::atomic<std::uint64_t> raises_{0};
  std::atomic<bool> gives_back_{false};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<bool> graphs_{false};
  std::atomic<std::uint64_t> served_calls_{0};
  std::atomic<std::uint64_t> served_{0};
  mutable Mutex mutex_{LockRank::kLeaf};
  std::array<Passed, kKinds> kinds_ WEIR_GUARDED_BY(mutex_){};
  Bytes claimed_ WEIR_GUARDED_BY(mutex_);                  ///< part of `used_`, by open claims
  std::uint64_t moves_ WEIR_GUARDED_BY(mutex_) = 0;        ///< open claims and returns
  std::uint64_t moves_ended_ WEIR_GUARDED_BY(mutex_) = 0;  ///< ended claims and returns
  std::condition_variable_any move_ended_;
};

/// Memory served outside the pools, by handle or address, to count its end. Thread-safe.
class PassedTable {
 public:
  struct Entry {
    Account* account = nullptr;
    CUcontext context = nullptr;  ///< the memory ends with this context
    Kind kind = Kind::kDirect;
    Bytes bytes;
  };
  void add(std::uint64_t handle, const Entry& entry);
  /// Removes and returns the entry with this handle, of `kind` or a kind that shares its numbers.
  /// Counted until `settle`. Call before the driver can reuse the handle.
  [[nodiscard]] std::optional<Entry> take(Kind kind, std::uint64_t handle) noexcept;
  /// Call after `take`. Counts the entry as freed if the driver `freed` it, otherwise puts it back.
  void settle(std::uint64_t handle, const std::optional<Entry>& entry, bool freed) noexcept;
  /// Drops the context and its memory.
  void forget(CUcontext context) noexcept;

 private:
  mutable Mutex mutex_{LockRank::kStream};
  std::unordered_map<std::uint64_t, Entry> entries_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::preload
