#include "tools/weir/run/frameworks.hpp"

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

}  // namespace weir::cli
