#include "bench/simulate/choices.hpp"

namespace weir::simulate {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t end = text.find(',', begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

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
  for (const std::string& part : split(text)) budgets.push_back(parse_budget(part));
  return budgets;
}

}  // namespace weir::simulate
