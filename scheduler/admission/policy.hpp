#pragma once

/// @file
/// What a user chooses about waiting: the policy, and how far the host may run ahead.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/setting.hpp"
#include "allocator/pool.hpp"

namespace weir {

/// What holds a frontend back, and what an allocation that does not fit may do.
enum class Policy : std::uint8_t {
  kThrottled,  ///< admission, and an allocation that does not fit hands over and waits
  kBackstop,   ///< no admission; an allocation that does not fit hands over and waits
  kUnbounded,  ///< no admission, no waiting: an allocation that does not fit fails at once
  kBarrier,    ///< a full wait after each batch
};

/// `throttled`, `backstop`, `unbounded` or `barrier`. UsageError otherwise, naming `name`.
[[nodiscard]] Policy parse_policy(std::string_view name, std::string_view text);
/// As parse_policy reads it.
[[nodiscard]] std::string_view to_string(Policy policy) noexcept;

/// Which stages of running out a policy has: `unbounded` leaves handover and waiting out.
[[nodiscard]] constexpr RunningOut running_out(Policy policy) noexcept {
  const bool may = policy != Policy::kUnbounded;
  return {.hand_over = may, .wait = may};
}

/// The soft limit: admission waits while at least `batches` are submitted and the device time that
/// they are expected to take exceeds `time`. Without `batches` there is no soft limit.
struct RunAhead {
  std::optional<std::uint64_t> batches = 2;  ///< submitted; nothing: no soft limit
  std::chrono::nanoseconds time = std::chrono::milliseconds(20);  ///< of the device

  /// Both the same.
  friend bool operator==(const RunAhead&, const RunAhead&) = default;
};

/// A whole number with a unit, `20ms` (s, ms, us): above nothing and up to an hour. Nothing for any
/// other text.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_time(std::string_view text);

/// `auto` (two batches or 20 ms, whichever is more), a number of batches, a time such as `20ms`
/// (units s, ms, us), or `off`. UsageError otherwise.
[[nodiscard]] RunAhead parse_run_ahead(std::string_view name, std::string_view text);
/// As parse_run_ahead reads it: `auto`, `4`, `20000us` or `off`.
[[nodiscard]] std::string format_run_ahead(const RunAhead& run_ahead);

/// Whether `submitted` batches of `queued_time` on the device are enough to wait. Pure.
[[nodiscard]] constexpr bool soft_limit_reached(std::uint64_t submitted,
                                                std::chrono::nanoseconds queued_time,
                                                const RunAhead& run_ahead) noexcept {
  return run_ahead.batches && submitted >= *run_ahead.batches && queued_time > run_ahead.time;
}

/// Policy and run-ahead from WEIR_POLICY and WEIR_RUN_AHEAD.
struct PolicyOptions {
  /// `throttled` unless set.
  Setting<Policy> policy = Setting<Policy>::by_default(Policy::kThrottled);
  /// Two batches or 20 ms unless set.
  Setting<RunAhead> run_ahead = Setting<RunAhead>::by_default({});

  /// Throws UsageError naming the variable, the value and what is allowed.
  [[nodiscard]] static PolicyOptions from_environment(
      const Environment& environment = process_environment());
};

}  // namespace weir
