#pragma once

/// @file
/// What a user chooses about waiting: the policy and the run-ahead.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "allocator/base/names.hpp"
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

/// The names in WEIR_POLICY.
[[nodiscard]] constexpr auto names_of(Policy /*of*/) noexcept {
  return name_table("throttled", "backstop", "unbounded", "barrier");
}

/// Returns the stages that a policy runs through when memory runs out: `unbounded` skips handover
/// and waiting.
[[nodiscard]] constexpr RunningOut running_out(Policy policy) noexcept {
  const bool may = policy != Policy::kUnbounded;
  return {.hand_over = may, .wait = may};
}

/// Returns the same for a scheduler's pool. Its submitted work never waits for the frontend, so
/// the frontend may wait for memory where a copy would otherwise wait for the last compute.
[[nodiscard]] constexpr RunningOut waiting_first(RunningOut stages) noexcept {
  stages.wait_first = stages.wait;
  return stages;
}

/// Returns the same for a program of which nothing is known: its streams may come and go.
[[nodiscard]] constexpr RunningOut before_growth(RunningOut stages) noexcept {
  stages.before_growth = stages.hand_over;
  return stages;
}

/// The soft limit: admission waits while at least `batches` are open or submitted and at least
/// `time` of expected device time is queued behind the running one. Without `batches` there is no
/// soft limit.
struct RunAhead {
  std::optional<std::uint64_t> batches = 2;        ///< in flight; none: no soft limit
  std::optional<std::chrono::nanoseconds> time{};  ///< of the device; none: adapts

  /// Compares both fields.
  friend bool operator==(const RunAhead&, const RunAhead&) = default;
};

/// Parses `auto` (at least two batches, and as much time as it takes to keep the device busy), a
/// number of batches, a time such as `20ms` (s, ms, us), or `off`. Otherwise throws UsageError.
[[nodiscard]] RunAhead parse_run_ahead(std::string_view name, std::string_view text);
/// Returns a text that parse_run_ahead reads: `auto`, `4`, `20000us` or `off`.
[[nodiscard]] std::string format_run_ahead(const RunAhead& run_ahead);

/// The soft limit that holds now.
struct RunAheadTarget {
  RunAhead limit{};                 ///< batches in flight, and device time queued
  std::uint64_t most = UINT64_MAX;  ///< batches in flight, whatever their time
  bool half_of_room = false;        ///< batches wait also once they hold half of the room

  /// Compares both fields.
  friend bool operator==(const RunAheadTarget&, const RunAheadTarget&) = default;
};

/// Whether the time of the target adapts to the run.
[[nodiscard]] constexpr bool adapts(const RunAhead& run_ahead) noexcept {
  return run_ahead.batches && !run_ahead.time;
}

/// Whether `in_flight` batches, with `queued` device time behind the running one, are enough to
/// wait. A target that adapts counts as no time. Pure.
[[nodiscard]] constexpr bool soft_limit_reached(std::uint64_t in_flight,
                                                std::chrono::nanoseconds queued,
                                                const RunAhead& run_ahead) noexcept {
  return run_ahead.batches && in_flight >= *run_ahead.batches &&
         queued >= run_ahead.time.value_or(std::chrono::nanoseconds{});
}

/// Policy and run-ahead from WEIR_POLICY and WEIR_RUN_AHEAD.
struct PolicyOptions {
  /// `throttled` unless set.
  Setting<Policy> policy = Setting<Policy>::by_default(Policy::kThrottled);
  /// `auto` unless set.
  Setting<RunAhead> run_ahead = Setting<RunAhead>::by_default({});

  /// Throws UsageError with the variable, the value and what is allowed.
  [[nodiscard]] static PolicyOptions from_environment(
      const Environment& environment = process_environment());
};

}  // namespace weir
