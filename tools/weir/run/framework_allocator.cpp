#include "tools/weir/run/framework_allocator.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace weir::cli {
namespace {

/// PyTorch skips blanks. The first backend named counts, but the last of any other option (tried
/// with 2.15).
Way torch_way(std::string_view configuration) {
  std::string text(configuration);
  std::erase_if(text, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  if (const std::size_t at = text.find("backend:"); at != std::string::npos) {
    if (text.substr(at, text.find(',', at) - at) == kTorchAsync) return Way::kStreamOrder;
  }
  const std::size_t on = text.rfind("expandable_segments:True");
  const std::size_t off = text.rfind("expandable_segments:False");
  const bool expandable = on != std::string::npos && (off == std::string::npos || off < on);
  return expandable ? Way::kHandles : Way::kCache;
}

InForce torch_in(const Environment& environment) {
  constexpr const char* kNoCache = "PYTORCH_NO_CUDA_MEMORY_CACHING";
  const char* const name = environment(kTorchOlder) != nullptr ? kTorchOlder : kTorchNewer;
  const char* const value = environment(name);
  const Way way = value != nullptr ? torch_way(value) : Way::kCache;
  if (way != Way::kStreamOrder && environment(kNoCache) != nullptr) {
    return {kPyTorch, Way::kUncached, kNoCache};
  }
  return {kPyTorch, way, value != nullptr ? name : nullptr};
}

std::string_view text_of(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value != nullptr ? value : std::string_view{};
}

InForce jax_in(const Environment& environment) {
  constexpr const char* kName = "XLA_PYTHON_CLIENT_ALLOCATOR";
  const std::string_view value = text_of(environment, kName);
  if (value.empty()) return {"JAX"};
  if (value == "default" || value == "bfc") return {"JAX", Way::kCache, kName};
  if (value == "cuda_async") return {"JAX", Way::kStreamOrder, kName};
  if (value == "platform") return {"JAX", Way::kUncached, kName};
  if (value == "vmm") return {"JAX", Way::kHandles, kName};
  return {"JAX", Way::kOther, kName};
}

InForce tensorflow_in(const Environment& environment) {
  constexpr const char* kName = "TF_GPU_ALLOCATOR";
  const std::string_view value = text_of(environment, kName);
  if (value.empty()) return {"TensorFlow"};
  if (value == "cuda_malloc_async") return {"TensorFlow", Way::kStreamOrder, kName};
  return {"TensorFlow", Way::kOther, kName};
}

}  // namespace

Frameworks frameworks_in(const Environment& environment) {
  return {torch_in(environment), jax_in(environment), tensorflow_in(environment)};
}

using preload::TorchWay;

namespace {

/// By default JAX takes three quarters of the memory at its start and divides it itself.
constexpr std::array<std::array<const char*, 2>, 3> kAsyncUnlessSet{
    {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
     {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
     {"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}};

constexpr const char* kTorchLacks =
    "PyTorch then has no torch.compile(mode=\"reduce-overhead\") or other CUDA-graph trees, no "
    "MemPool, no tensors shared between processes, no memory snapshot or history";

std::vector<Variable> to_set(const Choice& choice, const Environment& environment) {
  std::vector<Variable> variables;
  const auto unset = [&](const char* name) {
    const char* const value = environment(name);
    return value == nullptr || *value == '\0';
  };
  // Set both or neither: otherwise ours would hide the user's.
  if (choice.torch == TorchWay::kAsync && unset(kTorchOlder) && unset(kTorchNewer)) {
    for (const char* name : {kTorchNewer, kTorchOlder}) variables.push_back({name, kTorchAsync});
  }
  if (choice.mode == AllocatorMode::kFramework) return variables;
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

/// Whether the plug is in force, for the versions that have one.
bool is_plugged(const Choice& choice, const Frameworks& frameworks) {
  const Way way = frameworks.front().way;
  return choice.torch == TorchWay::kPlug && !choice.plugs.empty() &&
         (way == Way::kCache || way == Way::kHandles);
}

/// `PyTorch 2.9 and 2.15 take each tensor from Weir`.
std::string of_plug(const Choice& choice) {
  const std::vector<std::string_view> versions(choice.plugs.begin(), choice.plugs.end());
  const bool one = versions.size() == 1;
  return std::string(kPyTorch) + " " + listed(versions) + (one ? " takes" : " take") +
         " each tensor from Weir (--torch off: PyTorch's own cache)";
}

bool is_torch(const InForce& one) { return one.framework == std::string_view(kPyTorch); }

/// Returns how the modes have a framework allocate without a plug.
Way wanted(const Choice& choice, const InForce& one) {
  const bool async =
      is_torch(one) ? choice.torch == TorchWay::kAsync : choice.mode == AllocatorMode::kAsync;
  return async ? Way::kStreamOrder : Way::kCache;
}

/// `PyTorch and JAX ask Weir for each tensor in stream order`; empty if the modes want it of none.
std::string in_stream_order(const Choice& choice, const Frameworks& frameworks) {
  std::vector<std::string_view> names;
  for (const InForce& one : frameworks) {
    if (one.way == Way::kStreamOrder && wanted(choice, one) == one.way) {
      names.emplace_back(one.framework);
    }
  }
  if (names.empty()) return {};
  std::string text = listed(names) + (names.size() == 1 ? " asks" : " ask") +
                     " Weir for each tensor in stream order, and no cache keeps freed memory";
  if (names.front() != kPyTorch) return text;
  return text + "; " + kTorchLacks + " (--torch off has them)";
}

/// Describes what the modes do.
std::string of_modes(const Choice& choice, const Frameworks& frameworks) {
  const bool plugged = is_plugged(choice, frameworks);
  std::string text = in_stream_order(choice, frameworks);
  if (plugged) text = of_plug(choice) + (text.empty() ? "" : "; ") + text;
  if (choice.mode == AllocatorMode::kAsync) {
    if (text.empty()) return "nothing to set: your variables decide";
    const InForce& torch = frameworks.front();
    if (torch.way != Way::kCache || wanted(choice, torch) != torch.way) return text;
    return text + (plugged ? "; other versions of PyTorch keep their own cache"
                           : "; PyTorch keeps its own cache");
  }
  constexpr std::string_view kOwn =
      " keep their own caches, which Weir serves (--allocator async: each tensor)";
  const std::string_view who = plugged        ? "; other versions and frameworks"
                               : text.empty() ? "frameworks"
                                              : "; other frameworks";
  return text.append(who).append(kOwn);
}

/// Describes a framework that the user's variables, not the modes, decide.
std::string by_user(const Choice& choice, const InForce& one, bool plugged) {
  if (one.way == wanted(choice, one) || one.variable == nullptr) return {};
  const std::string_view name = one.variable;
  std::string text = "; by ";
  text.append(name).append(name == kTorchNewer ? " (read from 2.9 on) " : " ");
  if (is_torch(one) && plugged) {
    return text +
           "PyTorch maps what graphs and MemPools keep by handles, which Weir counts but does "
           "not serve";
  }
  text.append(one.framework).append(" ").append(does(one.way));
  return is_torch(one) && one.way == Way::kStreamOrder ? text + "; " + kTorchLacks : text;
}

}  // namespace

Setting<AllocatorMode> allocator_mode(const Environment& environment) {
  auto setting = Setting<AllocatorMode>::by_default(AllocatorMode::kFramework);
  read_setting(setting, environment, {"WEIR_ALLOCATOR"}, parse_name<AllocatorMode>);
  return setting;
}

Setting<TorchWay> torch_way(const Setting<AllocatorMode>& allocator,
                            const Environment& environment) {
  auto setting = Setting<TorchWay>::by_default(TorchWay::kPlug);
  if (allocator.source != "default") {
    const bool async = allocator.value == AllocatorMode::kAsync;
    setting = {async ? TorchWay::kAsync : TorchWay::kOff, allocator.source};
  }
  read_setting(setting, environment, {"WEIR_TORCH"}, parse_name<TorchWay>);
  return setting;
}

FrameworkAllocator choose_allocator(const Choice& choice, const Environment& environment) {
  FrameworkAllocator chosen{.variables = to_set(choice, environment), .line = {}};
  const Frameworks frameworks = in_force(chosen.variables, environment);
  const bool plugged = is_plugged(choice, frameworks);
  chosen.line = "allocator: " + of_modes(choice, frameworks);
  for (const InForce& one : frameworks) chosen.line += by_user(choice, one, plugged);
  return chosen;
}

}  // namespace weir::cli
