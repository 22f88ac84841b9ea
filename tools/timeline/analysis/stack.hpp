#pragma once

// Allocated memory over time, by key.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/counters.hpp"
#include "tools/timeline/analysis/holders.hpp"

namespace weir::timeline {

/// Every layer has a value at each time; the values add up to
/// the allocated bytes.
struct Stack {
  struct Layer {
    std::string key{};
    std::vector<std::uint64_t> values{};  ///< one for each entry of `at`
  };
  std::vector<std::uint64_t> at{};
  std::vector<Layer> layers{};            ///< highest peak first; `other` last if needed
  std::vector<std::uint64_t> awaiting{};  ///< freed, not yet passed by the device
  std::vector<std::uint64_t> cached{};    ///< free
};
struct StackOptions {
  GroupBy by = GroupBy::kKind;
  std::size_t most = 8;  ///< number of layers besides `other`
  std::uint32_t columns = 2000;
};
/// Keeps at most four moments of each column: the first, the lowest, the highest and the last of
/// the allocated bytes.
[[nodiscard]] Stack stacked(const Index& index, const PoolInfo& pool, Span span,
                            const StackOptions& options = {});

}  // namespace weir::timeline
