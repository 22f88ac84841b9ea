#include "bench/simulate/choices.hpp"

namespace weir::simulate {

std::uint64_t whole(const std::string& flag, const std::string& text, std::uint64_t least,
                    std::uint64_t most) {
  const auto value = parse_whole(text);
  if (!value || *value < least || *value > most) {
    refuse(flag, text,
           "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return *value;
}

std::vector<BudgetChoice> parse_budgets(const std::string& text) {
  std::vector<BudgetChoice> budgets;
  for (const std::string_view part : weir::split(text, ",")) {
    budgets.push_back(parse_budget(std::string(part)));
  }
  if (budgets.empty()) refuse("--budget", text, "at least one");
  return budgets;
}

void ChoiceFlags::add_to(CommandLine& line) {
  line.add("--workload", workloads, Value("all|NAME,..."), "what runs; see weir-simulate --list");
  line.add("--policy", policies, Value("all|NAME,..."), "what limits it; see weir-simulate --list");
  line.add("--budget", budgets, Value("NUMBER|BYTES|device|devices,..."),
           "times the least budget of the workload, sizes such as 24GiB, device "
           "(141 GB) or devices (8 x 141 GB)");
  line.add("--seed", seed, Value("N"), "seed of the sizes, and of drawn jitter");
  line.add("--wide", wide, "show all columns, and cut nothing to fit 100 columns");
}

Choices ChoiceFlags::read() const {
  return {.workloads = named("--workload", workloads, simulate::workloads()),
          .policies = named("--policy", policies, simulate::policies()),
          .budgets = parse_budgets(budgets),
          .seed = whole("--seed", seed, 0, UINT32_MAX)};
}

}  // namespace weir::simulate
