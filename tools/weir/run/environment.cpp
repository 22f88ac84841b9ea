#include "tools/weir/run/environment.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::cli {
namespace {

std::string_view value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr ? value : std::string_view{};
}

bool is_named_as_ours(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == "libweir.so";
}

/// Puts the library first: of two libraries that define a function, the first is called. Leaves out
/// other copies of it, such as one of a `weir run` around this one or of another installation: each
/// would keep a pool and a budget.
std::string preloaded(const std::string& library, std::string_view before) {
  constexpr std::string_view kSeparators = ": ";
  std::string all = library;
  while (!before.empty()) {
    const std::string_view path = before.substr(0, before.find_first_of(kSeparators));
    if (!path.empty() && !is_named_as_ours(path)) all.append(":").append(path);
    before.remove_prefix(std::min(path.size() + 1, before.size()));
  }
  return all;
}

}  // namespace

Prepared environment_for(const Preload& preload, const Environment& environment) {
  FrameworkAllocator allocator = choose_allocator(preload.allocator, environment);
  Prepared prepared{.variables = preload.flags, .allocator = std::move(allocator.line)};
  auto& variables = prepared.variables;
  variables.push_back(
      {"LD_PRELOAD", preloaded(preload.library, value_of(environment, "LD_PRELOAD"))});
  variables.push_back({"WEIR_SUMMARY", preload.summary});
  variables.push_back({"WEIR_CHECKED", "1"});
  variables.insert(variables.end(), allocator.variables.begin(), allocator.variables.end());
  if (preload.batch_range && value_of(environment, "NVTX_INJECTION64_PATH").empty()) {
    variables.push_back({"NVTX_INJECTION64_PATH", preload.library});
  }
  return prepared;
}

std::vector<std::string> with_variables(const char* const* current,
                                        const std::vector<Variable>& variables) {
  std::vector<std::string> lines;
  for (; *current != nullptr; ++current) {
    const std::string_view line = *current;
    const std::string_view name = line.substr(0, line.find('='));
    const bool replaced = std::ranges::any_of(
        variables, [&](const Variable& variable) { return variable.name == name; });
    if (!replaced) lines.emplace_back(line);
  }
  for (const Variable& variable : variables) lines.push_back(variable.name + "=" + variable.value);
  return lines;
}

}  // namespace weir::cli
