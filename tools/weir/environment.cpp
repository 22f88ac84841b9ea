#include "tools/weir/environment.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace weir::cli {
namespace {

constexpr const char* kTorchBackend = "backend:cudaMallocAsync";
/// PyTorch 2.9 reads the first before the second; earlier ones know the second alone.
constexpr std::array<const char*, 2> kTorchNames{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"};

constexpr std::array<std::array<const char*, 2>, 3> kUnlessSet{
    {// Otherwise JAX takes three quarters of the memory at its start, to share it out by itself.
     {"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
     {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
     {"TF_GPU_ALLOCATOR", "cuda_malloc_async"}}};

std::string_view value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr ? value : std::string_view{};
}

/// Before what is there: of two libraries that define a function the first is called.
std::string preloaded(const std::string& library, std::string_view before) {
  return before.empty() ? library : library + ":" + std::string(before);
}

void add_torch(Prepared& prepared, const Environment& environment) {
  for (const char* name : kTorchNames) {
    const std::string_view value = value_of(environment, name);
    if (value.empty()) continue;
    if (value.find(kTorchBackend) != std::string_view::npos) return;
    prepared.notes.push_back(std::string(name) + "='" + std::string(value) +
                             "' is left as it is: PyTorch keeps a cache of its own in front of "
                             "Weir's pool without " +
                             kTorchBackend);
    return;
  }
  for (const char* name : kTorchNames) prepared.variables.push_back({name, kTorchBackend});
}

}  // namespace

Prepared environment_for(const Preload& preload, const Environment& environment) {
  Prepared prepared;
  auto& variables = prepared.variables;
  variables = preload.flags;
  variables.push_back(
      {"LD_PRELOAD", preloaded(preload.library, value_of(environment, "LD_PRELOAD"))});
  variables.push_back({"WEIR_SUMMARY", preload.summary});
  variables.push_back({"WEIR_CHECKED", "1"});
  add_torch(prepared, environment);
  for (const auto& [name, value] : kUnlessSet) {
    if (value_of(environment, name).empty()) variables.push_back({name, value});
  }
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
