#include "tools/preload/at_exit.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "allocator/log.hpp"

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

void write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool good =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  if ((file == nullptr || std::fclose(file) == 0) && good) return;
  log(LogLevel::kError, "the summary cannot be written to '" + path + "': " + std::strerror(why));
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
  sum.waited += one.waited;
  sum.budget = one.budget;
  add(device.paced, arena.paced());
  add(device.batches, arena.batch_waits());
  device.batches_marked += arena.batches();
}

void write_summary(const Summary& summary, const Settings& settings) {
  bool any = false;
  for (const DeviceSummary& device : summary.devices) {
    any = any || device.served_calls != 0 || !device.passed.empty();
  }
  if (!any) return;
  if (!settings.summary.value.empty()) {
    write_file(settings.summary.value, to_json(summary));
  } else if (settings.log.value >= LogLevel::kInfo) {
    log(LogLevel::kInfo, "summary\n" + to_text(summary));
  }
}

}  // namespace weir::preload
