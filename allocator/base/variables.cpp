#include "allocator/base/variables.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "allocator/base/log.hpp"

namespace weir {
namespace {

constexpr std::array<std::string_view, 27> kKnown{"WEIR_ALLOCATOR",
                                                  "WEIR_ALLOC_LOG",
                                                  "WEIR_ALLOC_LOG_LIMIT",
                                                  "WEIR_BATCH_RANGE",
                                                  "WEIR_BUDGET",
                                                  "WEIR_LIBRARY",
                                                  "WEIR_LOG",
                                                  "WEIR_MAX_WAIT",
                                                  "WEIR_NVML",
                                                  "WEIR_POLICY",
                                                  "WEIR_POOL",
                                                  "WEIR_POOL_LARGE_ROUND_SIZE",
                                                  "WEIR_POOL_LINEAR_CUTOFF",
                                                  "WEIR_POOL_PAGE_SIZE",
                                                  "WEIR_POOL_SEGMENT_SIZE",
                                                  "WEIR_PUBLISH",
                                                  "WEIR_RUN_AHEAD",
                                                  "WEIR_SHARE",
                                                  "WEIR_SHARE_FLOOR",
                                                  "WEIR_SHARE_GROUP",
                                                  "WEIR_SPILL",
                                                  "WEIR_SUMMARY",
                                                  "WEIR_SYNC_FREE",
                                                  "WEIR_TIMELINE",
                                                  "WEIR_TIMELINE_BATCHES",
                                                  "WEIR_TIMELINE_BUFFER",
                                                  "WEIR_TORCH"};

/// Prefixes of the stand-in driver, the tests and the scripts, between `weir run` and the library,
/// and for fault-finding with CUPTI (docs/timelines.md).
constexpr std::array<std::string_view, 8> kOthers{"WEIR_STANDIN_", "WEIR_TEST_",  "WEIR_GPU_",
                                                  "WEIR_FAKE_",    "WEIR_BENCH_", "WEIR_PEERS",
                                                  "WEIR_CHECKED",  "WEIR_CUPTI"};

/// The Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

bool is_unknown(std::string_view name) {
  if (!name.starts_with("WEIR_") || std::ranges::count(kKnown, name) != 0) return false;
  return std::ranges::none_of(kOthers,
                              [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::span<const std::string_view> known_variables() noexcept { return kKnown; }

std::vector<std::string> unknown_variables(const char* const* lines) {
  std::vector<std::string> warnings;
  for (; *lines != nullptr; ++lines) {
    const std::string_view line = *lines;
    const std::string_view name = line.substr(0, line.find('='));
    if (!is_unknown(name)) continue;
    const std::string_view nearest = *std::ranges::min_element(
        kKnown, {}, [name](std::string_view known) { return distance(name, known); });
    warnings.push_back(std::string(name) +
                       " is set but is not a variable of Weir: the nearest is " +
                       std::string(nearest));
  }
  return warnings;
}

void warn_of_unknown_variables(const char* const* environment) {
  for (const std::string& warning : unknown_variables(environment)) {
    log(LogLevel::kWarn, warning);
  }
}

}  // namespace weir
