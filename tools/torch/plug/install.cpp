// What libweir.so calls after it has opened the plug.

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "tools/torch/plug/allocator.hpp"
#include "tools/torch/plug/forked.hpp"

namespace weir::torch_plug {
namespace {

#define WEIR_TORCH_TEXT(x) #x
#define WEIR_TORCH_VERSION_TEXT(major, minor) WEIR_TORCH_TEXT(major) "." WEIR_TORCH_TEXT(minor)

/// The first version of weir.h that has what the plug calls.
constexpr int kWeirVersion = 4;

/// Installs the allocator and returns nothing, or why not.
std::string install() {
  NativeAllocator* const native = native_api::allocator.load();
  if (installed != nullptr && native == installed) return {};
  if (native == nullptr) return "PyTorch has no CUDA allocator yet";
  if (native->name() != "native") return "the backend " + native->name() + " was chosen";
  if (native->initialized()) return "PyTorch's CUDA allocator is in use already";
  if (std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr) {
    return "PYTORCH_NO_CUDA_MEMORY_CACHING asks for no caching";
  }
  if (weir_api_version() < kWeirVersion) {
    return "libweir.so is not in this process, or is older than the plug";
  }
  weir_allow_sharing();
  if (pthread_atfork(nullptr, nullptr, [] { forked_child.store(true); }) != 0) {
    return "no memory for a handler of forks";
  }
  installed = new WeirAllocator(*native, native->raw_deleter());
  native_api::allocator.store(installed);
  c10::SetAllocator(c10::kCUDA, installed);
  return {};
}

}  // namespace
}  // namespace weir::torch_plug

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))

/// Returns the version of PyTorch that this plug is for, "2.15".
WEIR_EXPORT const char* weir_torch_version() {
  return WEIR_TORCH_VERSION_TEXT(TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR);
}

/// Makes Weir the allocator of PyTorch's tensors. Call it after libc10_cuda.so is initialised and
/// before CUDA is used, on one thread. Returns 1 if Weir is installed; otherwise 0, changes nothing
/// and writes the reason into `text`, at most `size` bytes with the closing zero. Throws nothing.
WEIR_EXPORT int weir_torch_install(char* text, std::size_t size) {
  std::string reason;
  try {
    reason = weir::torch_plug::install();
    if (reason.empty()) return 1;
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (text != nullptr && size > 0) (void)std::snprintf(text, size, "%s", reason.c_str());
  return 0;
}
