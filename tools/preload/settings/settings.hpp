#pragma once

// The swap-in's settings, all environment variables. The library reads them at a program's first
// CUDA call; `weir run` checks them before it starts the program.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/log.hpp"
#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/share/share_setting.hpp"
#include "scheduler/admission/policy.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::preload {

/// What NVML tells the program of its own memory.
enum class NvmlAnswers : std::uint8_t {
  kBudget,  ///< the budget, as cuMemGetInfo does
  kReal,    ///< NVML's own figures
};
[[nodiscard]] constexpr auto names_of(NvmlAnswers /*of*/) noexcept {
  return name_table("budget", "real");
}

/// Where memory comes from when the budget is used up and no wait helps.
enum class SpillTo : std::uint8_t {
  kNowhere,  ///< the request fails
  kHost,     ///< managed memory that stays on the host
};
[[nodiscard]] constexpr auto names_of(SpillTo /*of*/) noexcept { return name_table("off", "host"); }

/// How PyTorch allocates.
enum class TorchWay : std::uint8_t {
  kPlug,   ///< Weir's plug takes its allocator's place, if there is one for its version
  kAsync,  ///< each tensor from the driver in stream order, as PyTorch's variables ask it to
  kOff,    ///< by its own allocator, whose segments Weir serves
};
[[nodiscard]] constexpr auto names_of(TorchWay /*of*/) noexcept {
  return name_table("plug", "async", "off");
}

struct Settings {
  PoolOptions pool;  ///< WEIR_POOL, WEIR_BUDGET (per device), and so on
  /// True if WEIR_POOL is `auto` or unset: two pools, `pool.kind` for cuMemAlloc and another for
  /// memory in stream order (pools.hpp). Otherwise one pool of `pool.kind`.
  Setting<bool> auto_pools = Setting<bool>::by_default(true);
  PolicyOptions policy;  ///< WEIR_POLICY, WEIR_RUN_AHEAD
  ShareSettings share;   ///< WEIR_SHARE, WEIR_SHARE_FLOOR, WEIR_SHARE_GROUP
  /// WEIR_SYNC_FREE, `0` or `1`: cuMemFree waits for the device, for programs that rely on that.
  Setting<bool> sync_free = Setting<bool>::by_default(false);
  /// WEIR_MAX_WAIT, a time such as `10s` (s, ms, us): the longest that one call is held back.
  Setting<std::chrono::nanoseconds> max_wait =
      Setting<std::chrono::nanoseconds>::by_default(std::chrono::seconds(10));
  /// WEIR_SPILL, `off` or `host`.
  Setting<SpillTo> spill = Setting<SpillTo>::by_default(SpillTo::kNowhere);
  /// WEIR_TORCH, `plug`, `async` or `off`. The library knows `plug` alone: `weir run` sets
  /// PyTorch's variables for `async`.
  Setting<TorchWay> torch = Setting<TorchWay>::by_default(TorchWay::kPlug);
  /// WEIR_BATCH_RANGE: an NVTX range of this name is a batch; none when empty.
  Setting<std::string> batch_range = Setting<std::string>::by_default({});
  /// WEIR_NVML, `budget` or `real`.
  Setting<NvmlAnswers> nvml = Setting<NvmlAnswers>::by_default(NvmlAnswers::kBudget);
  /// WEIR_SUMMARY: a file for the JSON summary at the program's end; `%p` is the process's number.
  /// None if empty.
  Setting<std::string> summary = Setting<std::string>::by_default({});
  /// WEIR_TIMELINE, WEIR_TIMELINE_BATCHES, WEIR_TIMELINE_BUFFER.
  timeline::TimelineSettings timeline;
  /// WEIR_PUBLISH: whether and where `weir top` finds the program.
  Setting<timeline::PublishSetting> publish =
      Setting<timeline::PublishSetting>::by_default(timeline::PublishSetting{});
  /// WEIR_LOG.
  Setting<LogLevel> log = Setting<LogLevel>::by_default(LogLevel::kWarn);

  /// Throws UsageError: one line with the variable, the value and what is allowed.
  [[nodiscard]] static Settings from_environment(
      const Environment& environment = process_environment());
};

/// Checks for a kind of pool or `auto`. Otherwise throws UsageError with `name`.
void check_pool(std::string_view name, std::string_view text);

/// Returns `auto` or the kind's name.
[[nodiscard]] std::string pool_name(const Settings& settings);

/// Parses a time above zero and up to an hour, for WEIR_MAX_WAIT. Otherwise throws UsageError.
[[nodiscard]] std::chrono::nanoseconds parse_max_wait(std::string_view name, std::string_view text);

/// Returns all settings in force, in the order of Settings.
[[nodiscard]] std::vector<SettingLine> describe(const Settings& settings);

}  // namespace weir::preload
