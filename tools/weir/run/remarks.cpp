#include "tools/weir/run/remarks.hpp"

#include <chrono>
#include <csignal>
#include <cstring>

#include "allocator/pool_options.hpp"
#include "tools/program/table.hpp"

namespace weir::cli {

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

std::string waits_line(const preload::DeviceSummary& device, std::string_view pool) {
  const std::uint64_t waits = device.pool.waits + device.paced.count + device.batches.count;
  const std::string what = advice(device, pool);
  return "  waited " + format_count(waits, "time") + ", " +
         seconds(device.pool.waited + device.paced.total + device.batches.total) + " in all; " +
         format_count(device.pool.failures, "request") + " failed" +
         (what.empty() ? "" : "; try " + what) + "\n";
}

}  // namespace

std::string advice(const preload::DeviceSummary& device, std::string_view pool) {
  // Fragmentation above this is severe. Less than a driver page is rounding by the driver.
  constexpr double kSevere = 0.1;
  const Statistics& s = device.pool;
  const double fragmented = fragmentation(device);
  const bool rounding = minus_or_zero(s.reserved.peak, s.allocated.peak) < mib(2);
  if (fragmented >= kSevere && !rounding && pool != to_string(PoolKind::kPaged)) {
    const bool best = pool == to_string(PoolKind::kBestFit);
    return std::string("--pool ") + (best ? "paged" : "best_fit") + ": fragmentation is " +
           percent(fragmented);
  }
  if (s.failures == 0) return {};
  return "a larger --budget, or a smaller batch: " + format_count(s.failures, "request") +
         " found no memory";
}

std::string brief(const preload::Summary& summary) {
  std::string text = "weir: process " + std::to_string(summary.process) + ", " + summary.program +
                     ": pool " + summary.pool + ", policy " + summary.policy + "\n";
  for (const preload::DeviceSummary& device : summary.devices) {
    text += memory_line(device) + waits_line(device, summary.pool);
  }
  return text;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::vector<Remark> remarks(const Ended& ended, const Collected& collected) {
  std::vector<Remark> all;
  for (const std::string& file : collected.unreadable) {
    all.push_back({LogLevel::kWarn, "the summary " + file +
                                        " is incomplete: its process was ended while writing it"});
  }
  if (!collected.summaries.empty() || !all.empty()) return all;
  if (ended.signal != 0) {
    all.push_back({LogLevel::kWarn, "there is no summary: " + signal_name(ended.signal) +
                                        " ended the program before it could write one"});
  } else {
    // A program that ends by _exit(), for example, or may write no file, may have used CUDA.
    all.push_back({LogLevel::kWarn,
                   "there is no summary: the program used no CUDA, or ended without writing one"});
  }
  return all;
}

}  // namespace weir::cli
