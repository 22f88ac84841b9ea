#include "tools/preload/process/at_exit.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "allocator/base/log.hpp"
#include "allocator/base/output_place.hpp"
#include "allocator/base/setting.hpp"
#include "tools/program/output_file.hpp"
#include "tools/timeline/model/background_thread.hpp"

namespace weir::preload {
namespace {

void add(Waits& sum, const Waits& waits) {
  sum.count += waits.count;
  sum.total += waits.total;
}

void add(Gauge& sum, const Gauge& gauge) {
  sum.current += gauge.current;
  sum.peak += gauge.peak;
}

/// Adds `part` to the pools that serve the same memory in other contexts.
void add(std::vector<PoolSummary>& pools, const Pools::Part& part) {
  const Statistics now = part.pool->statistics();
  if (now.reserved.highest().count == 0) return;
  const std::string_view kind = to_string(part.pool->options().kind.value);
  auto sum = std::ranges::find_if(pools, [&](const PoolSummary& pool) {
    return pool.serves == part.serves && pool.kind == kind;
  });
  if (sum == pools.end()) {
    sum = pools.insert(pools.end(), PoolSummary{});
    sum->serves = part.serves;
    sum->kind = kind;
  }
  // Since the pool's beginning: the program may have reset the peaks.
  sum->allocated += now.allocated.highest();
  sum->queued += std::max(now.awaiting.highest(), now.queued_at_growth);
  sum->needed += std::max(now.held.highest(), now.needed_at_growth);
  sum->reserved += now.reserved.highest();
}

/// Whether `path` is a regular file that does not hold a summary: the program's own script, for
/// example, if WEIR_SUMMARY names it by mistake.
bool is_something_else(const std::string& path) {
  const OutputPlace place = find_output(path);
  if (place.special || !place.identity || place.error != 0) return false;
  constexpr std::string_view kSummary = "{\"process\":";
  std::array<char, kSummary.size()> front{};
  const int file = open(place.path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, front.data(), front.size());
  if (file >= 0) close(file);
  if (got == 0) return false;
  return got < 0 || std::string_view(front.data(), static_cast<std::size_t>(got)) != kSummary;
}

void write_file(const std::string& path, const std::string& text) {
  attempt(LogLevel::kError, "the summary cannot be written", [&] {
    if (is_something_else(path)) {
      refuse("WEIR_SUMMARY", path, "a new file, or a summary that it replaces");
    }
    OutputFile("WEIR_SUMMARY", path).commit(text);
  });
}

}  // namespace

std::string program_path() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

void add(DeviceSummary& device, const Arena& arena) {
  const Statistics one = arena.statistics();
  Statistics& sum = device.pool;
  for (Gauge Statistics::*gauge :
       {&Statistics::requested, &Statistics::allocated, &Statistics::awaiting, &Statistics::cached,
        &Statistics::reserved, &Statistics::held}) {
    add(sum.*gauge, one.*gauge);
  }
  for (std::uint64_t Statistics::*count :
       {&Statistics::hits, &Statistics::misses, &Statistics::handovers, &Statistics::waits,
        &Statistics::retries, &Statistics::releases, &Statistics::failures}) {
    sum.*count += one.*count;
  }
  for (const Pools::Part& part : arena.pool().parts()) {
    if (part.pool != nullptr) add(device.pools, part);
  }
  sum.waited += one.waited;
  raise_each(sum.pressure, one.pressure);
  sum.budget = one.budget;
  add(device.paced, arena.paced());
  const auto admission = arena.batches().statistics();
  for (const auto& [cause, stalls] : {std::pair{&device.batches_budget, admission.budget},
                                      std::pair{&device.batches_run_ahead, admission.soft},
                                      std::pair{&device.batches_turn, admission.turn}}) {
    const Waits waits{.count = stalls.count, .total = stalls.total};
    add(*cause, waits);
    add(device.batches, {.count = 0, .total = waits.total});
  }
  device.batches.count += admission.stalled;
  device.batches_forced += admission.forced;
  device.batches_marked += arena.batches().count();
}

bool is_summary_wanted(const Settings& settings) noexcept {
  return !settings.summary.value.empty() || settings.log.value >= LogLevel::kInfo;
}

bool finish_within(std::chrono::nanoseconds most, std::function<void()> work) {
  const auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  const std::future<void> ended = task->get_future();
  try {
    const timeline::AllSignalsBlocked blocked;
    std::thread([task] { (*task)(); }).detach();
  } catch (const std::system_error&) {
    (*task)();
  }
  return ended.wait_for(most) == std::future_status::ready;
}

void write_summary(const Summary& summary, const Settings& settings) {
  bool any = false;
  for (const DeviceSummary& device : summary.devices) {
    any = any || device.served_calls != 0 || device.pool.failures != 0 || !device.passed.empty();
  }
  if (!any) return;
  if (!settings.summary.value.empty()) {
    write_file(settings.summary.value, to_json(summary));
  } else if (settings.log.value >= LogLevel::kInfo) {
    log(LogLevel::kInfo, "summary\n" + to_text(summary));
  }
}

}  // namespace weir::preload
