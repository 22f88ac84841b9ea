// What happens when Weir has no memory for a tensor.

#include <c10/util/Exception.h>
#include <dlfcn.h>

#include "tools/torch/books/report.hpp"
#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {
namespace {

struct DeviceMemory {
  std::size_t free = 0;
  std::size_t total = 0;
};

// What the driver tells the program about the current device, which Weir limits to the budget.
// Zeros if it does not answer. The runtime is not asked: the plug does not know its version.
DeviceMemory memory_of_current_device() {
  using GetInfo = int(std::size_t*, std::size_t*);
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return {};
  auto* const get_info = reinterpret_cast<GetInfo*>(dlsym(driver, "cuMemGetInfo_v2"));
  DeviceMemory memory;
  if (get_info == nullptr || get_info(&memory.free, &memory.total) != 0) memory = {};
  (void)dlclose(driver);
  return memory;
}

}  // namespace

void* WeirAllocator::make_room_and_retry(Device& of, const Block& block) {
  const auto again = [&block] { return weir_allocate(block.device, block.bytes, block.stream); };
  auto* const callbacks = c10::FreeCudaMemoryCallbacksRegistry();
  bool freed = false;
  for (const std::string& name : callbacks->Keys()) freed |= callbacks->Create(name)->Execute();
  if (freed) {
    if (void* const address = again()) return address;
  }
  of.counters.count_retry();
  // While a pool is open a capture may be under way, which must not free segments.
  try {
    if (!routes_.any()) native_.emptyCache();  // its segments come back to Weir
  } catch (const c10::Error&) {
    // Another thread has opened a pool meanwhile: up to 2.5 native then asserts, before it changes
    // anything. No lock may cover both: native gathers contexts, which takes Python's lock.
  }
  return again();
}

void WeirAllocator::fail(Device& of, const Block& block) {
  of.counters.count_failure();
  const weir_memory weir = memory_of(block.device);
  const DeviceMemory memory = memory_of_current_device();
  const auto in_pools =
      static_cast<std::uint64_t>(look_at_native(block.device).allocated_bytes[0].current);
  const std::int64_t allocated = of.counters.read().bytes[0].current;
  recorder_.on_failure(block, memory.total, memory.free, allocated);
  const Shortage shortage{block.device,
                          block.bytes,
                          memory.total,
                          memory.free,
                          static_cast<std::uint64_t>(allocated),
                          in_pools,
                          weir.reserved,
                          weir.budget,
                          weir.awaiting,
                          weir.cached,
                          weir.passed};
  TORCH_CHECK_WITH(OutOfMemoryError, false, shortage_text(shortage));
}

}  // namespace weir::torch_plug
