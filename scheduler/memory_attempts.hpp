#pragma once

// The attempts of one request for memory: each failed one waits for other open batches, at most for
// the grace, before the next.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"

namespace weir {

/// Ends the message of a Cancelled thrown by a request for memory.
inline constexpr const char* kMemoryWaitCancelled = ": the wait for memory was cancelled";

/// Of one request, on its thread.
///
///   MemoryAttempts attempts(pool, admission, owner, label);
///   for (;;) {
///     Attempt attempt = attempts.begin();
///     if (void* memory = pool.try_allocate(bytes, stream, label, attempt)) return memory;
///     attempts.count(attempt);
///     attempts.wait_or_fail(attempt);
///   }
class MemoryAttempts {
 public:
  /// `may_wait` false: the first failed attempt is the last. All but `label`'s text outlive it.
  MemoryAttempts(Pool& pool, Admission& admission, const Owner& owner, std::string_view label,
                 bool may_wait = true) noexcept
      : pool_(pool),
        admission_(admission),
        owner_(owner),
        label_(label),
        may_wait_(may_wait),
        last_(!may_wait) {}

  /// Returns the next attempt. Frees from now on end the wait after it.
  [[nodiscard]] Attempt begin() noexcept;
  /// Call once after each failed attempt: the report covers the waits of all.
  void count(Attempt& attempt) noexcept {
    waits_ = waits(attempt);
    attempt.waits = waits_.count;
  }
  /// Returns when another attempt may succeed. Throws OutOfMemory after the last one, and Cancelled
  /// if the owner's stop was requested.
  void wait_or_fail(const Attempt& attempt);
  /// Returns what the request has waited until the end of `attempt`.
  [[nodiscard]] Stalls waits(const Attempt& attempt) const noexcept {
    Stalls sum = waits_;
    sum += {.count = attempt.waits, .total = attempt.waited};
    return sum;
  }

 private:
  Pool& pool_;
  Admission& admission_;
  const Owner& owner_;
  const std::string_view label_;
  const bool may_wait_;
  bool last_;
  Stalls waits_;
  std::uint64_t freed_ = 0;  ///< Admission::given_back() before the attempt
  std::optional<std::chrono::steady_clock::time_point> deadline_;
  Pressure pressure_;  ///< before the attempt
};

}  // namespace weir
