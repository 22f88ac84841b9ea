#pragma once

// Reads the values of flags that both programs have.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "bench/simulate/comparison.hpp"

namespace weir::simulate {

/// Splits at commas.
[[nodiscard]] std::vector<std::string> split(const std::string& text);
/// Parses a number. Throws UsageError.
[[nodiscard]] std::uint64_t whole(const std::string& flag, const std::string& text,
                                  std::uint64_t least, std::uint64_t most);
/// Parses several budgets. Throws UsageError.
[[nodiscard]] std::vector<BudgetChoice> parse_budgets(const std::string& text);

/// Returns what the names in `text` name in `all`. Throws UsageError for unknown names and for
/// names that are there twice.
template <typename All>
[[nodiscard]] auto named(const std::string& flag, const std::string& text, const All& all) {
  std::vector<decltype(all.data())> found;
  for (const std::string& name : split(text)) {
    const std::size_t before = found.size();
    for (const auto& one : all) {
      const bool is_named = name == "all" || one.name == name;
      if (is_named && std::ranges::count(found, &one) == 0) found.push_back(&one);
    }
    if (found.size() == before) refuse(flag, text, "different names of --list, or all");
  }
  return found;
}

}  // namespace weir::simulate
