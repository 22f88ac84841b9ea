// The C functions that PyTorch's pluggable allocator takes by address
// (torch.cuda.memory.CUDAPluggableAllocator; recipe in docs/c-api.md). A cudaStream_t is a
// CUstream, so the runtime's headers are not needed.

#include <cuda.h>
#include <dlfcn.h>
#include <sys/types.h>

#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdio>

#include "allocator/base/log.hpp"
#include "tools/preload/process/api.hpp"

namespace {

using weir::LogLevel;
using Text = std::array<char, 256>;

// Throws std::runtime_error from the program's own C++ library. An exception from the copy inside
// this library would be caught, but the program's count of exceptions in flight would stay wrong.
// Returns if the program has no C++ library.
//
// The caller must have no live object that needs a destructor.
void throw_in_program(const char* what) {
  void* const library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  using Throw = void (*)(const char*);
  const auto throw_runtime_error =
      reinterpret_cast<Throw>(dlsym(library, "_ZSt21__throw_runtime_errorPKc"));
  if (throw_runtime_error != nullptr) throw_runtime_error(what);
}

// PyTorch and its users recognise out-of-memory by the first words.
Text describe_failure(ssize_t size, int device) noexcept {
  weir::preload::MemoryInfo info{};
  Text text{};
  if (weir::preload::memory_info(device, info)) {
    std::snprintf(text.data(), text.size(),
                  "CUDA out of memory. Weir has no %zd bytes on device %d: budget %" PRIu64
                  ", allocated %" PRIu64 ", awaiting %" PRIu64 ", passed %" PRIu64 " bytes.",
                  size, device, info.budget.count, info.allocated.count, info.awaiting.count,
                  info.passed.count);
  } else {
    std::snprintf(
        text.data(), text.size(),
        "CUDA out of memory. Weir has no %zd bytes on device %d, which has not been used yet.",
        size, device);
  }
  return text;
}

}  // namespace

#define WEIR_EXPORT extern "C" __attribute__((visibility("default")))

/// Allocates `size` bytes in the order of `stream`; null if there is no memory, or for 0 bytes. For
/// an allocator of a torch.cuda.MemPool: there PyTorch takes null as out of memory, frees its cache
/// and tries again (allocPrimitive in c10/cuda/CUDACachingAllocator.cpp).
WEIR_EXPORT void* weir_torch_alloc_or_null(ssize_t size, int device, CUstream stream) {
  if (size <= 0) return nullptr;
  return weir::preload::allocate_on(device, static_cast<std::size_t>(size), stream);
}

/// The same for torch.cuda.memory.change_current_allocator, but throws std::runtime_error, in
/// Python a RuntimeError that begins with `CUDA out of memory.`: there PyTorch takes even null as
/// memory (malloc in torch/csrc/cuda/CUDAPluggableAllocator.cpp), and the next kernel would write
/// to address 0. A tensor without elements asks for 0 bytes and gets null.
WEIR_EXPORT void* weir_torch_alloc(ssize_t size, int device, CUstream stream) {
  void* const memory = weir_torch_alloc_or_null(size, device, stream);
  if (memory != nullptr || size == 0) return memory;
  const Text text = describe_failure(size, device);
  throw_in_program(text.data());
  weir::log(LogLevel::kError, text.data());
  return nullptr;
}

/// Frees in the order of `stream`, the allocation's, and after recorded uses.
WEIR_EXPORT void weir_torch_free(void* memory, ssize_t /*size*/, int device, CUstream stream) {
  if (memory != nullptr) weir::preload::free_on(device, memory, stream);
}

/// Does nothing: a device is set up at its first use, whatever its number.
WEIR_EXPORT void weir_torch_init(int /*device_count*/) {}

/// Implements torch.cuda.empty_cache.
WEIR_EXPORT void weir_torch_reset() { (void)weir::preload::trim(-1); }

/// Implements torch.cuda.set_per_process_memory_fraction. The budget is set before the program
/// starts and does not change, so tell the caller.
WEIR_EXPORT void weir_torch_memory_fraction(double fraction, int device) {
  Text text{};
  std::snprintf(text.data(), text.size(),
                "a memory fraction of %g for device %d is ignored; WEIR_BUDGET sets the budget",
                fraction, device);
  weir::log(LogLevel::kWarn, text.data());
}

/// PyTorch calls this before it shares memory with another process. Each block is its own base, as
/// PyTorch assumes without this function. The size is not known: 0.
WEIR_EXPORT void* weir_torch_base_alloc(void* memory, std::size_t* size) {
  if (size != nullptr) *size = 0;
  return memory;
}

/// Implements Tensor.record_stream.
WEIR_EXPORT void weir_torch_record_stream(void* memory, CUstream stream) {
  if (memory != nullptr) weir::preload::record_use_on(-1, memory, stream);
}
