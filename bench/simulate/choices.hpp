#pragma once

// The flags that both programs have, and what they choose.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "bench/simulate/comparison.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/split.hpp"

namespace weir::simulate {

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
  for (const std::string_view name : weir::split(text, ",")) {
    const std::size_t before = found.size();
    for (const auto& one : all) {
      const bool is_named = name == "all" || one.name == name;
      if (is_named && std::ranges::count(found, &one) == 0) found.push_back(&one);
    }
    if (found.size() == before) refuse(flag, text, "different names of --list, or all");
  }
  if (found.empty()) refuse(flag, text, "names of --list, or all");
  return found;
}

/// What the flags choose.
struct Choices {
  std::vector<const Workload*> workloads;
  std::vector<const PolicyChoice*> policies;
  std::vector<BudgetChoice> budgets;
  std::uint64_t seed = 1;
};

/// The flags, with a program's own defaults.
struct ChoiceFlags {
  std::string workloads = "all";
  std::string policies = "all";
  std::string budgets;
  std::string seed = "1";
  bool wide = false;

  void add_to(CommandLine& line);
  /// Throws UsageError.
  [[nodiscard]] Choices read() const;
};

}  // namespace weir::simulate
