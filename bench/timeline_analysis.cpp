// The processor time and the memory that the figures of a long timeline take.
//
//   timeline_analysis [EVENTS]     10^7 unless told

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

#include "tests/timeline/support/made_timeline.hpp"
#include "tools/timeline/analysis/holders.hpp"
#include "tools/timeline/analysis/report.hpp"

namespace weir::timeline {
namespace {

/// Of the process, since the last `forget_peak`.
double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:" && status >> word) return std::strtod(word.c_str(), nullptr) / 1024;
  }
  return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

int run(std::uint64_t events) {
  constexpr std::uint32_t kEventsOfABatch = 33;
  Timeline timeline = testing::made_timeline(
      {.batches = static_cast<std::uint32_t>(events / kEventsOfABatch), .barrier_every = 10});
  timeline.processes.front().records.shrink_to_fit();
  forget_peak();
  const double before = peak_mib();
  const double start = processor_seconds();
  const auto seconds = [start] { return processor_seconds() - start; };
  std::printf("%zu events\n", timeline.processes.front().records.size());
  const Index index(timeline.processes.front());
  std::printf("index    %6.2f s\n", seconds());
  for (const PoolInfo& pool : index.pools()) {
    (void)pool_series(index, pool, index.span(), 131072);
    (void)stacked(index, pool, index.span(), {.by = GroupBy::kLabel});
    (void)stacked(index, pool, index.span(), {.by = GroupBy::kKind});
    (void)stacked(index, pool, index.span(), {.by = GroupBy::kSite});
    (void)lifetimes(index, pool, 10000);
  }
  std::printf("pictures %6.2f s\n", seconds());
  const std::size_t size = report_text(timeline).size();
  std::printf("report   %6.2f s, %zu bytes; %.0f MiB beside the records\n", seconds(), size,
              peak_mib() - before);
  return 0;
}

}  // namespace
}  // namespace weir::timeline

int main(int count, char** arguments) {
  return weir::timeline::run(count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 10'000'000);
}
