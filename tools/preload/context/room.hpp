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

  /// Returns its waits for the device.
  [[nodiscard]] const Stalls& waits() const noexcept { return waits_; }
  /// Returns a line for the report: what was released.
  [[nodiscard]] std::string found() const;

 private:
  /// Returns whether anything changed since the last attempt began.
  [[nodiscard]] bool has_changed(Refusal refusal, bool may_wait) noexcept;
  [[nodiscard]] bool trim(const Lack& lack);
  [[nodiscard]] bool await_release();
  [[nodiscard]] std::chrono::nanoseconds left() const noexcept;

  Device& device_;
  const Pool* const asked_;
  const Clock::time_point until_;
  Account::Returned before_;
  std::uint64_t raises_;
  Bytes of_program_;  ///< released by its pools and graphs
  Bytes of_pools_;    ///< released by ours
  Stalls waits_;
  bool drained_ = false;   ///< all work was waited for
  bool hopeless_ = false;  ///< no work that is submitted could help
  unsigned late_ = 0;      ///< rounds after `until_`
  unsigned changes_ = 0;   ///< rounds in a row because something changed
};

/// Asks until `ask()`, which returns a Refusal, is served or nothing helps. `bytes` is what it
/// claimed last.
template <typename Ask>
Refusal obtain(Room& room, const Bytes& bytes, const Ask& ask) {
  for (;;) {
    const Refusal refusal = ask();
    if (refusal == Refusal::kNone || refusal == Refusal::kOther) return refusal;
    if (!room.make({.refusal = refusal, .bytes = bytes, .whole = bytes}, true)) return refusal;
  }
}

}  // namespace weir::preload
