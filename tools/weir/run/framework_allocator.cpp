#include "tools/weir/run/framework_allocator.hpp"

#include <algorithm>
#include <array>

#include "tools/weir/run/frameworks.hpp"

namespace weir::cli {
namespace {

/// By default JAX takes three quarters of the memory at its start and divides it itself.
constexpr std::array<std::array<const char*, 2>, 3> kAsyncUnlessSet{
    {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
     {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
     {"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}};

constexpr const char* kTorchLacks =
    "PyTorch then has no torch.compile(mode=\"reduce-overhead\") or other CUDA-graph trees, no "
    "MemPool, no tensors shared between processes, no memory snapshot or history";

std::vector<Variable> to_set(AllocatorMode mode, const Environment& environment) {
  std::vector<Variable> variables;
  if (mode == AllocatorMode::kFramework) return variables;
  const auto unset = [&](const char* name) {
    const char* const value = environment(name);
    return value == nullptr || *value == '\0';
  };
  // Set both or neither: otherwise ours would hide the user's.
  if (unset(kTorchOlder) && unset(kTorchNewer)) {
    for (const char* name : {kTorchNewer, kTorchOlder}) variables.push_back({name, kTorchAsync});
  }
  for (const auto& [name, value] : kAsyncUnlessSet) {
    if (unset(name)) variables.push_back({name, value});
  }
  return variables;
}

/// Returns what is in force with `variables` set. What one of them sets is not the user's.
Frameworks in_force(const std::vector<Variable>& variables, const Environment& environment) {
  const auto ours = [&](const char* name) {
    return std::ranges::find(variables, name, &Variable::name);
  };
  Frameworks frameworks = frameworks_in([&](const char* name) -> const char* {
    const auto found = ours(name);
    return found != variables.end() ? found->value.c_str() : environment(name);
  });
  for (InForce& one : frameworks) {
    if (one.variable != nullptr && ours(one.variable) != variables.end()) one.variable = nullptr;
  }
  return frameworks;
}

/// Returns `A`, `A and B`, or `A, B and C`.
std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string does(Way way) {
  switch (way) {
    case Way::kCache:
      return "keeps its own cache, and Weir serves the cache's segments";
    case Way::kStreamOrder:
      return "requests each tensor in stream order";
    case Way::kHandles:
      return "maps memory by handles, which Weir counts but does not serve";
    case Way::kUncached:
      return "requests each tensor and keeps no cache";
    case Way::kOther:
      break;
  }
  return "allocates as this setting says";
}

/// Describes what the mode does.
std::string of_mode(AllocatorMode mode, const Frameworks& frameworks) {
  if (mode == AllocatorMode::kFramework) {
    return "frameworks keep their own caches and all their features; Weir serves the caches' "
           "segments and does not see single tensors (--allocator async: each tensor in stream "
           "order)";
  }
  std::vector<std::string_view> names;
  for (const InForce& one : frameworks) {
    if (one.way == Way::kStreamOrder) names.emplace_back(one.framework);
  }
  if (names.empty()) return "nothing to set: your variables decide";
  std::string text = listed(names) + (names.size() == 1 ? " asks" : " ask") +
                     " Weir for each tensor in stream order, and no cache keeps freed memory";
  if (names.front() != kPyTorch) return text;
  return text + "; " + kTorchLacks + " (--allocator framework has them)";
}

/// Describes a framework that the user's variables, not the mode, decide.
std::string by_user(AllocatorMode mode, const InForce& one) {
  const Way of_mode = mode == AllocatorMode::kAsync ? Way::kStreamOrder : Way::kCache;
  if (one.way == of_mode || one.variable == nullptr) return {};
  const std::string_view name = one.variable;
  std::string text = "; by ";
  text.append(name).append(name == kTorchNewer ? " (read from 2.9 on) " : " ");
  text.append(one.framework).append(" ").append(does(one.way));
  const bool lacks = one.framework == std::string_view(kPyTorch) && one.way == Way::kStreamOrder;
  return lacks ? text + "; " + kTorchLacks : text;
}

}  // namespace

AllocatorMode parse_allocator_mode(std::string_view name, std::string_view text) {
  for (const AllocatorMode mode : {AllocatorMode::kFramework, AllocatorMode::kAsync}) {
    if (text == to_string(mode)) return mode;
  }
  refuse(name, text, "framework or async");
}

std::string_view to_string(AllocatorMode mode) noexcept {
  return mode == AllocatorMode::kAsync ? "async" : "framework";
}

Setting<AllocatorMode> allocator_mode(const Environment& environment) {
  auto setting = Setting<AllocatorMode>::by_default(AllocatorMode::kFramework);
  read_setting(setting, environment, {"WEIR_ALLOCATOR"}, parse_allocator_mode);
  return setting;
}

FrameworkAllocator choose_allocator(AllocatorMode mode, const Environment& environment) {
  FrameworkAllocator chosen{.variables = to_set(mode, environment), .line = {}};
  const Frameworks frameworks = in_force(chosen.variables, environment);
  chosen.line = "allocator " + std::string(to_string(mode)) + ": " + of_mode(mode, frameworks);
  for (const InForce& one : frameworks) chosen.line += by_user(mode, one);
  return chosen;
}

}  // namespace weir::cli
