#include "tools/torch/plug/allocator.hpp"

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>

#include <optional>

#include "tools/torch/plug/forked.hpp"

namespace weir::torch_plug {
namespace {

// The deleter of every tensor, whether Weir or native served it: PyTorch compares a storage's
// deleter with raw_deleter() before it takes the storage apart.
void delete_block(void* pointer) { installed->raw_delete(pointer); }

c10::DeviceIndex current_device() {
  c10::DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return device;
}

void trace_allocation(const void* address) {
  const c10::impl::PyInterpreter* const python = c10::impl::GPUTrace::get_trace();
  if (C10_UNLIKELY(python != nullptr)) {
    (*python)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(address));
  }
}

void trace_deallocation(const void* address) {
  const c10::impl::PyInterpreter* const python = c10::impl::GPUTrace::get_trace();
  if (C10_UNLIKELY(python != nullptr)) {
    (*python)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(address));
  }
}

}  // namespace

WeirAllocator* installed = nullptr;

c10::DataPtr WeirAllocator::allocate(std::size_t bytes) {
  constexpr std::size_t kOneExa = std::size_t{1} << 60U;
  TORCH_CHECK_WITH(OutOfMemoryError, bytes < kOneExa,
                   "CUDA out of memory. Tried to allocate more than 1EB memory.");
  // What is not cached has another deleter, and stays with it.
  if (C10_UNLIKELY(!enabled_.load(std::memory_order_relaxed))) return native_.allocate(bytes);
  const c10::DeviceIndex device = current_device();
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device).stream();
  void* const memory = bytes == 0 ? nullptr : obtain(device, bytes, stream);
  return {memory, memory, &delete_block, c10::Device(c10::kCUDA, device)};
}

c10::DeleterFnPtr WeirAllocator::raw_deleter() const {
  return enabled_.load(std::memory_order_relaxed) ? &delete_block : native_.raw_deleter();
}

void* WeirAllocator::raw_alloc(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const c10::DeviceIndex device = current_device();
  return obtain(device, bytes, c10::cuda::getCurrentCUDAStream(device).stream());
}

void* WeirAllocator::raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) {
  return bytes == 0 ? nullptr : obtain(current_device(), bytes, stream);
}

void* WeirAllocator::obtain(c10::DeviceIndex device, std::size_t bytes, cudaStream_t stream) {
  if (C10_UNLIKELY(routes_.match(device, stream))) {
    return obtain_from_native(device, bytes, stream);
  }
  return obtain_from_weir(device, bytes, stream);
}

void* WeirAllocator::obtain_from_native(c10::DeviceIndex device, std::size_t bytes,
                                        cudaStream_t stream) {
  void* const address = native_.raw_alloc_with_stream(bytes, stream);
  note_native(device);
  return address;
}

void WeirAllocator::note_native(c10::DeviceIndex device) noexcept {
  try {
    device_of(device).native_serves.store(true, std::memory_order_relaxed);
    (void)look_at_native(device);
  } catch (const std::exception&) {
    // No memory on the host for native's figures: the next look has them.
  }
}

void* WeirAllocator::obtain_from_weir(c10::DeviceIndex device, std::size_t bytes,
                                      cudaStream_t stream) {
  Device& of = device_of(device);
  if (C10_UNLIKELY(!of.used.load(std::memory_order_relaxed))) take_fraction_of_settings(of, device);
  const Block block{rounded(bytes), bytes, stream, recorder_.context(), device};
  void* address = weir_allocate(device, block.bytes, stream);
  if (C10_UNLIKELY(address == nullptr)) address = make_room_and_retry(of, block);
  if (C10_UNLIKELY(address == nullptr)) {
    // Native takes it from free memory of such a pool, or throws the error.
    if (pools_help_) return obtain_from_native(device, bytes, stream);
    fail(of, block);
  }
  try {
    blocks_.insert(address, block);
  } catch (...) {
    weir_free(device, address, stream);
    throw;
  }
  try {
    const std::int64_t allocated = of.counters.add(block.bytes, block.requested);
    recorder_.on_allocation(address, block, allocated);
    trace_allocation(address);
  } catch (...) {
    raw_delete(address);
    throw;
  }
  return address;
}

void WeirAllocator::note_native() noexcept {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i]->native_serves.load(std::memory_order_relaxed)) {
      note_native(static_cast<c10::DeviceIndex>(i));
    }
  }
}

void WeirAllocator::raw_delete(void* pointer) {
  if (pointer == nullptr || is_forked_child()) return;
  const std::optional<Block> block = blocks_.take(pointer);
  if (!block) {
    native_.raw_delete(pointer);
    note_native();  // does not say of which device it was
    return;
  }
  trace_deallocation(pointer);
  Device& of = device_of(block->device);
  recorder_.on_free(pointer, *block, of.counters.remove(block->bytes, block->requested));
  // Last: from here on another thread may get the same address.
  weir_free(block->device, pointer, block->stream);
}

void WeirAllocator::recordStream(const c10::DataPtr& pointer, c10::cuda::CUDAStream stream) {
  // A tensor of another allocator, such as one shared by another process, is kept alive there.
  if (!pointer || pointer.get_deleter() != &delete_block) return;
  cudaStream_t own = nullptr;
  if (blocks_.with(pointer.get(), [&own](const Block& block) { own = block.stream; })) {
    if (own != stream.stream()) weir_record_use(pointer.get(), stream.stream());
    return;
  }
  // Native asks for its own deleter. Without a context nothing is deleted.
  native_.recordStream(c10::DataPtr(pointer.get(), nullptr, native_deleter_, pointer.device()),
                       stream);
}

void* WeirAllocator::getBaseAllocation(void* pointer, std::size_t* size) {
  std::size_t bytes = 0;
  if (!blocks_.with(pointer, [&bytes](const Block& block) { bytes = block.bytes; })) {
    return native_.getBaseAllocation(pointer, size);
  }
  if (size != nullptr) *size = bytes;
  return pointer;
}

c10::DataPtr WeirAllocator::rewrapped(c10::DataPtr pointer) const {
  (void)pointer.compare_exchange_deleter(native_deleter_, &delete_block);
  return pointer;
}

WeirAllocator::Device& WeirAllocator::device_of(c10::DeviceIndex device) {
  const auto index = static_cast<std::size_t>(device);  // a negative one is larger than all
  TORCH_CHECK(index < devices_.size(), "Allocator not initialized for device ",
              static_cast<int>(device), ": did you call init?");
  return *devices_[index];
}

}  // namespace weir::torch_plug
