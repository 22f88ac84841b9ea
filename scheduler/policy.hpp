#pragma once

// What a user chooses about waiting: the policy, and how far the host may run ahead.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/pool.hpp"
#include "allocator/setting.hpp"

namespace weir {

enum class Policy : std::uint8_t {
  kThrottled,  ///< admission, and an allocation that does not fit hands over and waits
  kBackstop,   ///< no admission; an allocation that does not fit hands over and waits
  kUnbounded,  ///< no admission, no waiting: an allocation that does not fit fails at once
  kBarrier,    ///< a full wait after each batch
};

[[nodiscard]] Policy parse_policy(std::string_view name, std::string_view text);
[[nodiscard]] std::string_view to_string(Policy policy) noexcept;

/// Which stages of running out a policy has: `unbounded` leaves handover and waiting out.
[[nodiscard]] constexpr RunningOut running_out(Policy policy) noexcept {
  const bool may = policy != Policy::kUnbounded;
  return {.hand_over = may, .wait = may};
}

/// The soft limit: admission waits while at least `batches` are submitted and the device time that
/// they are expected to take exceeds `time`. Without `batches` there is no soft limit.
struct RunAhead {
  std::optional<std::uint64_t> batches = 2;
  std::chrono::nanoseconds time = std::chrono::milliseconds(20);

  friend bool operator==(const RunAhead&, const RunAhead&) = default;
};

/// `auto` (two batches or 20 ms, whichever is more), a number of batches, a time such as `20ms`
/// (units s, ms, us), or `off`. UsageError otherwise.
[[nodiscard]] RunAhead parse_run_ahead(std::string_view name, std::string_view text);
[[nodiscard]] std::string format_run_ahead(const RunAhead& run_ahead);

[[nodiscard]] constexpr bool soft_limit_reached(std::uint64_t submitted,
                                                std::chrono::nanoseconds queued_time,
                                                const RunAhead& run_ahead) noexcept {
  return run_ahead.batches && submitted >= *run_ahead.batches && queued_time > run_ahead.time;
}

/// Policy and run-ahead from WEIR_POLICY and WEIR_RUN_AHEAD.
struct PolicyOptions {
  Setting<Policy> policy = Setting<Policy>::by_default(Policy::kThrottled);
  Setting<RunAhead> run_ahead = Setting<RunAhead>::by_default({});

  [[nodiscard]] static PolicyOptions from_environment(
      const Environment& environment = process_environment());
};

}  // namespace weir
