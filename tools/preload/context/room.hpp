#pragma once

// How room is made on a device for a request that was refused, whoever serves it. The stages, in
// order: what the driver has released by itself; what the program's pools, graphs and our pools
// keep; memory on its way back; more of a share; and waits for the device's work.

#include <chrono>
#include <cstdint>
#include <string>

#include "scheduler/admission/admission.hpp"
#include "tools/preload/context/device.hpp"

namespace weir::preload {

/// What an attempt lacked.
struct Lack {
  Refusal refusal = Refusal::kNone;
  Bytes bytes{};  ///< what was not given; zero: not known
  Bytes whole{};  ///< the whole request
  /// The pool that was asked has something to release, for which the device must be awaited.
  bool busy = false;
};

/// For one request, on its thread.
class Room {
 public:
  using Clock = std::chrono::steady_clock;

  /// `asked` is the pool that is asked, which has released what it can; null for the driver. No
  /// wait ends after `until`.
  Room(Device& device, Clock::time_point until, const Pool* asked = nullptr) noexcept
      : device_(device),
        asked_(asked),
        until_(until),
        before_(device.account().returned()),
        raises_(device.account().raises().load()) {}

  /// Call after an attempt was refused. Returns true if another one may succeed: something changed
  /// or was released since this was constructed or last called. With `may_wait`, waits for work of
  /// the device.
  [[nodiscard]] bool make(const Lack& lack, bool may_wait) noexcept;
  /// Returns whether the budget was raised since then: whatever was refused may be served.
  [[nodiscard]] bool is_raised() noexcept;
  /// How long an attempt may wait by itself.
  [[nodiscard]] WaitLimit limit() const;
  /// Returns whether the device was just awaited, so that the next attempt may release memory.
  [[nodiscard]] bool may_release() const noexcept { return settled_; }

  /// Returns its waits for the device.
  [[nodiscard]] const Stalls& waits() const noexcept { return waits_; }
  /// Returns a line for the report: what was released.
  [[nodiscard]] std::string found() const;

 private:
  /// Returns whether anything changed since the last attempt began.
  [[nodiscard]] bool has_changed(Refusal refusal, bool may_wait) noexcept;
  [[nodiscard]] bool trim(const Lack& lack, bool settled);
  /// Awaits the device before pools release memory, if they might have enough.
  [[nodiscard]] bool settle(const Lack& lack, bool may_wait);
  [[nodiscard]] bool await_release();
  /// Returns whether a wait for all work could help, as far as the program's own pools go.
  [[nodiscard]] bool may_drain() const noexcept { return drained_ != device_.own().frees(); }

  Device& device_;
  const Pool* const asked_;
  const Clock::time_point until_;
  Account::Returned before_;
  std::uint64_t raises_;
  Bytes of_program_;  ///< released by its pools and graphs
  Bytes of_pools_;    ///< released by ours
  Stalls waits_;
  std::optional<std::uint64_t> drained_;  ///< OwnMemory::frees when all work was last waited for
  bool busy_ = false;      ///< what pools could release was not, since the device was busy
  bool settled_ = false;   ///< pools may release memory
  bool hopeless_ = false;  ///< no work that is submitted could help
  unsigned late_ = 0;      ///< rounds after `until_`
  unsigned changes_ = 0;   ///< rounds in a row because something changed
};

/// Asks until `ask()`, which returns what it lacked, is served or nothing helps. Returns how the
/// last attempt ended.
template <typename Ask>
Refusal obtain(Room& room, const Ask& ask) {
  for (;;) {
    const Lack lack = ask();
    const bool may_help = lack.refusal == Refusal::kBudget || lack.refusal == Refusal::kDevice;
    if (!may_help || !room.make(lack, true)) return lack.refusal;
  }
}

}  // namespace weir::preload
