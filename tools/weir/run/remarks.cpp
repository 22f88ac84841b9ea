#include "tools/weir/run/remarks.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include "allocator/pool_options.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/program/report_table.hpp"
#include "tools/program/table.hpp"

namespace weir::cli {
namespace {

using preload::DeviceSummary;
using preload::PoolSummary;
using preload::Summary;

/// Less than a share of the reserved memory is not worth a change, and less than a driver page is
/// rounding by the driver.
constexpr double kSevere = 0.1;
constexpr Bytes kPage = mib(2);
constexpr std::string_view kInOrder = "stream order";  ///< what a pool of `auto` serves

bool is_severe(Bytes part, Bytes reserved) {
  return part >= kPage &&
         static_cast<double>(part.count) >= kSevere * static_cast<double>(reserved.count);
}

/// Reserved memory is allocated, queued (freed, but the device has not passed it), or neither.
struct Parts {
  Bytes reserved;
  Bytes run_ahead;   ///< needed beyond the allocated memory
  Bytes fragmented;  ///< reserved beyond the needed memory
};

Parts parts_of(const PoolSummary& pool) {
  return {.reserved = pool.reserved,
          .run_ahead = minus_or_zero(pool.needed, pool.allocated),
          .fragmented = minus_or_zero(pool.reserved, pool.needed)};
}

Parts parts_of(const DeviceSummary& device) {
  Parts sum;
  for (const PoolSummary& pool : device.pools) {
    const Parts parts = parts_of(pool);
    sum.reserved += parts.reserved;
    sum.run_ahead += parts.run_ahead;
    sum.fragmented += parts.fragmented;
  }
  return sum;
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

/// Returns what shortens the run-ahead, which is that of `most`'s memory above all.
std::string less_run_ahead(const Summary& summary, const DeviceSummary& device,
                           const PoolSummary& most) {
  const std::string budget = summary.policy == to_string(Policy::kUnbounded)
                                 ? "--policy throttled with a smaller --budget"
                                 : "a smaller --budget";
  // With marked batches a wait in each free would undo what the marks are for.
  if (device.batches_marked != 0) return "try " + budget;
  if (most.serves == kInOrder) return "mark batches (--batch-range), or try " + budget;
  if (is_set_to(summary, "sync-free", "1")) return "try " + budget;
  return "try --sync-free (if it calls cudaFree) or " + budget;
}

/// The kinds of pool that leave few holes. Each leaves fewer than those before it.
constexpr std::array kFewHoles{PoolKind::kBestFit, PoolKind::kPaged};

/// Returns the pool's place among them, from 1 on; 0 if it leaves more holes.
std::size_t rank_of(const PoolSummary& pool) {
  const auto* const found = std::ranges::find(
      kFewHoles, pool.kind, [](PoolKind kind) { return std::string(to_string(kind)); });
  return found == kFewHoles.end() ? 0 : static_cast<std::size_t>(found - kFewHoles.begin()) + 1;
}

/// Returns which pool would leave fewer holes and why; empty if none would. A named pool serves all
/// memory: it is better for the memory with the holes, and no worse for any other. So following the
/// advice again and again ends at the best one.
std::string better_pool(const DeviceSummary& device) {
  const PoolSummary* worst = nullptr;
  std::size_t rank = 0;
  for (const PoolSummary& pool : device.pools) {
    rank = std::max(rank, rank_of(pool));
    const bool severe = is_severe(parts_of(pool).fragmented, parts_of(device).reserved);
    if (!severe || rank_of(pool) == kFewHoles.size()) continue;
    // `auto` takes best_fit for this memory only where the device maps no pages.
    if (pool.serves == kInOrder) continue;
    if (worst == nullptr || parts_of(*worst).fragmented < parts_of(pool).fragmented) worst = &pool;
  }
  if (worst == nullptr) return {};
  const PoolKind better = kFewHoles.at(std::max(rank, rank_of(*worst) + 1) - 1);
  const Parts parts = parts_of(*worst);
  return "try --pool " + std::string(to_string(better)) + ": fragmentation " +
         (device.pools.size() > 1 ? "of " + worst->serves + " " : "") + "is " +
         format_number(100 * static_cast<double>(parts.fragmented.count) /
                           static_cast<double>(parts.reserved.count),
                       1) +
         "%";
}

/// For a program whose requests failed: it needs room, so no smaller budget.
std::string more_room(const Summary& summary, const DeviceSummary& device, const Parts& parts) {
  const bool never_waits = summary.policy == to_string(Policy::kUnbounded);
  const std::string flags = never_waits && is_severe(parts.run_ahead, parts.reserved)
                                ? "--policy throttled"
                                : "a larger --budget, or a smaller batch";
  return "try " + flags + ": " + format_count(device.pool.failures, "request") + " found no memory";
}

/// Returns the waits for memory. The pool and the batches both have those of the batches'
/// allocations.
preload::Waits for_room(const preload::DeviceSummary& device) {
  const preload::Waits of_pool{.count = device.pool.waits, .total = device.pool.waited};
  const preload::Waits& of_batches = device.batches_budget;
  return of_pool.total < of_batches.total ? of_batches : of_pool;
}

/// Returns advice for a program that waited in its budget for some seconds.
std::string fewer_waits(const DeviceSummary& device) {
  constexpr std::chrono::seconds kLong{1};
  const std::chrono::nanoseconds waited = for_room(device).total;
  if (waited < kLong) return {};
  return "to wait less, try a larger --budget: " +
         format_number(std::chrono::duration<double>(waited).count(), 3) +
         " s were waits for room in this one";
}

}  // namespace

bool awaiting_matters(const DeviceSummary& device) {
  const Parts parts = parts_of(device);
  return is_severe(parts.run_ahead, parts.reserved);
}

Bytes queued(const DeviceSummary& device) {
  Bytes sum;
  for (const PoolSummary& pool : device.pools) sum += pool.queued;
  return sum;
}

std::string advice(const Summary& summary, const DeviceSummary& device) {
  const Parts parts = parts_of(device);
  const bool fails = device.pool.failures != 0;
  if (!fails && awaiting_matters(device) && is_most(parts.run_ahead, parts.reserved)) {
    const auto most = std::ranges::max_element(
        device.pools, {}, [](const PoolSummary& pool) { return parts_of(pool).run_ahead; });
    return "to take less memory, " + less_run_ahead(summary, device, *most);
  }
  std::string pool = better_pool(device);
  if (!pool.empty()) return pool;
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

namespace {

std::string percent(double share) { return format_number(100 * share, 1) + "%"; }

std::string seconds(std::chrono::nanoseconds time) {
  return format_number(std::chrono::duration<double>(time).count(), 3) + " s";
}

std::string memory_line(const preload::DeviceSummary& device) {
  const Statistics& pool = device.pool;
  return "  device " + std::to_string(device.device) + ": peak allocated " +
         format_bytes(pool.allocated.peak) + ", reserved " + format_bytes(pool.reserved.peak) +
         " of the budget " + format_bytes(device.budget) + ", " + percent(served_share(device)) +
         " served by Weir\n";
}

std::string awaiting_line(const preload::DeviceSummary& device) {
  if (!awaiting_matters(device)) return {};
  return "  awaiting the device: at most " + format_bytes(queued(device)) +
         ", freed but still used by queued work\n";
}

std::string waits_line(const preload::DeviceSummary& device) {
  preload::Waits all = for_room(device);
  for (const auto& waits : {device.paced, device.batches_run_ahead, device.batches_turn}) {
    all.count += waits.count;
    all.total += waits.total;
  }
  return "  waited " + format_count(all.count, "time") + ", " + seconds(all.total) + " in all; " +
         format_count(device.pool.failures, "request") + " failed\n";
}

std::string advice_line(const preload::Summary& summary, const preload::DeviceSummary& device) {
  const std::string what = advice(summary, device);
  return what.empty() ? what : wrapped("  " + what, 4);
}

}  // namespace

std::string brief(const preload::Summary& summary) {
  std::string text = "weir: process " + std::to_string(summary.process) + ", " + summary.program +
                     ": pool " + summary.pool + ", policy " + summary.policy + "\n";
  for (const preload::DeviceSummary& device : summary.devices) {
    text += memory_line(device) + awaiting_line(device) + waits_line(device);
    text += advice_line(summary, device);
  }
  return text;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::vector<Remark> remarks(const Ended& ended, const Collected& collected,
                            const std::string& hint) {
  std::vector<Remark> all;
  for (const std::string& file : collected.unreadable) {
    all.push_back({LogLevel::kWarn, "the summary " + file +
                                        " is incomplete: its process was ended while writing it"});
  }
  for (const SummaryFile& file : collected.summaries) {
    const std::string text = without_effect(file.summary);
    const Remark remark{LogLevel::kWarn, text};  // once, however many processes there are
    if (!text.empty() && std::ranges::find(all, remark) == all.end()) all.push_back(remark);
  }
  if (!collected.summaries.empty() || !all.empty()) return all;
  if (ended.signal != 0) {
    all.push_back({LogLevel::kWarn, "there is no summary: " + signal_name(ended.signal) +
                                        " ended the program before it could write one"});
  } else {
    // A program that ends by _exit(), for example, or may write no file, may have used CUDA.
    all.push_back({LogLevel::kWarn,
                   "there is no summary: the program used no CUDA, or ended without writing one"});
    if (!hint.empty()) all.push_back({LogLevel::kWarn, hint});
  }
  return all;
}

}  // namespace weir::cli
