#include "tools/weir/run/advice.hpp"

#include <algorithm>
#include <chrono>

#include "allocator/pool_options.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/program/table.hpp"

namespace weir::cli {
namespace {

using preload::DeviceSummary;
using preload::Summary;

/// Less than a share of the reserved memory is not worth a change, and less than a driver page is
/// rounding by the driver.
constexpr double kSevere = 0.1;
constexpr Bytes kPage = mib(2);

bool is_severe(Bytes part, Bytes reserved) {
  return part >= kPage &&
         static_cast<double>(part.count) >= kSevere * static_cast<double>(reserved.count);
}

/// Reserved memory is allocated, held only because the device has not passed it, or neither.
struct Parts {
  Bytes reserved;
  Bytes run_ahead;   ///< held beyond the allocated memory
  Bytes fragmented;  ///< reserved beyond the held memory
};

Parts parts_of(const DeviceSummary& device) {
  const Statistics& s = device.pool;
  return {.reserved = s.reserved.peak,
          .run_ahead = minus_or_zero(s.held.peak, s.allocated.peak),
          .fragmented = minus_or_zero(s.reserved.peak, s.held.peak)};
}

bool is_most(Bytes part, Bytes all) { return part.count >= all.count / 2; }

const SettingLine* find_setting(const Summary& summary, std::string_view name) {
  const auto found = std::ranges::find(summary.settings, name, &SettingLine::name);
  return found == summary.settings.end() ? nullptr : &*found;
}

bool is_set_to(const Summary& summary, std::string_view name, std::string_view value) {
  const SettingLine* const line = find_setting(summary, name);
  return line != nullptr && line->value == value;
}

/// Returns the flags that shorten the run-ahead.
std::string less_run_ahead(const Summary& summary, const DeviceSummary& device) {
  std::string budget = summary.policy == to_string(Policy::kUnbounded)
                           ? "--policy throttled with a smaller --budget"
                           : "a smaller --budget";
  // With marked batches a wait in each free would undo what the marks are for.
  if (device.batches_marked != 0 || is_set_to(summary, "sync-free", "1")) return budget;
  return "--sync-free (if it calls cudaFree) or " + budget;
}

/// For a program whose requests failed: it needs room, so no smaller budget.
std::string more_room(const Summary& summary, const DeviceSummary& device, const Parts& parts) {
  const bool never_waits = summary.policy == to_string(Policy::kUnbounded);
  const std::string flags = never_waits && is_severe(parts.run_ahead, parts.reserved)
                                ? "--policy throttled"
                                : "a larger --budget, or a smaller batch";
  return "try " + flags + ": " + format_count(device.pool.failures, "request") + " found no memory";
}

/// Returns advice for a program that waited in its budget for some seconds.
std::string fewer_waits(const DeviceSummary& device) {
  constexpr std::chrono::seconds kLong{1};
  const std::chrono::nanoseconds waited = device.pool.waited + device.batches_budget.total;
  if (waited < kLong) return {};
  return "to wait less, try a larger --budget: " +
         format_number(std::chrono::duration<double>(waited).count(), 3) +
         " s were waits for room in this one";
}

}  // namespace

bool awaiting_matters(const DeviceSummary& device) {
  return is_severe(parts_of(device).run_ahead, device.pool.reserved.peak);
}

std::string advice(const Summary& summary, const DeviceSummary& device) {
  const Parts parts = parts_of(device);
  const bool fails = device.pool.failures != 0;
  if (!fails && awaiting_matters(device) && is_most(parts.run_ahead, parts.reserved)) {
    return "to take less memory, try " + less_run_ahead(summary, device);
  }
  if (is_severe(parts.fragmented, parts.reserved) && summary.pool != to_string(PoolKind::kPaged)) {
    const bool best = summary.pool == to_string(PoolKind::kBestFit);
    return std::string("try --pool ") + (best ? "paged" : "best_fit") + ": fragmentation is " +
           format_number(100 * fragmentation_of_held(device), 1) + "%";
  }
  return fails ? more_room(summary, device, parts) : fewer_waits(device);
}

std::string without_effect(const Summary& summary) {
  const bool marked = std::ranges::any_of(
      summary.devices, [](const DeviceSummary& device) { return device.batches_marked != 0; });
  if (marked || summary.devices.empty()) return {};
  std::string names;
  if (summary.policy == to_string(Policy::kBarrier)) names = "policy barrier";
  const SettingLine* const ahead = find_setting(summary, "run-ahead");
  const bool batches = ahead != nullptr && !ahead->value.empty() &&
                       ahead->value.find_first_not_of("0123456789") == std::string::npos;
  if (batches) names += (names.empty() ? "" : " and ") + ("run-ahead " + ahead->value);
  if (names.empty()) return {};
  return "no batch was marked, so " + names + " held nothing back (--batch-range marks batches)";
}

}  // namespace weir::cli
