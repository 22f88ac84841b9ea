#include "tools/weir/run/remarks.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>

#include "tools/program/report_table.hpp"
#include "tools/program/table.hpp"
#include "tools/weir/run/advice.hpp"

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

std::string awaiting_line(const preload::DeviceSummary& device) {
  if (!awaiting_matters(device)) return {};
  return "  awaiting the device: at most " + format_bytes(queued(device)) +
         ", freed but still used by queued work\n";
}

std::string waits_line(const preload::DeviceSummary& device) {
  const std::uint64_t waits = device.pool.waits + device.paced.count + device.batches.count;
  return "  waited " + format_count(waits, "time") + ", " +
         seconds(device.pool.waited + device.paced.total + device.batches.total) + " in all; " +
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
