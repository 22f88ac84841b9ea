// Private pools and checkpoints of them, which stay native's.

#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {

void WeirAllocator::beginAllocateToPool(c10::DeviceIndex device, MempoolId pool,
                                        std::function<bool(cudaStream_t)> filter) {
  native_.beginAllocateToPool(device, pool, filter);  // refuses a pool that is open
  routes_.open(device, pool, std::move(filter));
}

void WeirAllocator::endAllocateToPool(c10::DeviceIndex device, MempoolId pool) {
  routes_.close(device, pool);
  native_.endAllocateToPool(device, pool);
}

void WeirAllocator::releasePool(c10::DeviceIndex device, MempoolId pool) {
  native_.releasePool(device, pool);
}

bool WeirAllocator::checkPoolLiveAllocations(c10::DeviceIndex device, MempoolId pool,
                                             const std::unordered_set<void*>& expected) {
  return native_.checkPoolLiveAllocations(device, pool, expected);
}

std::shared_ptr<native_api::AllocatorState> WeirAllocator::getCheckpointState(
    c10::DeviceIndex device, MempoolId pool) {
  return native_.getCheckpointState(device, pool);
}

native_api::CheckpointDelta WeirAllocator::setCheckpointPoolState(
    c10::DeviceIndex device, std::shared_ptr<native_api::AllocatorState> state) {
  native_api::CheckpointDelta delta = native_.setCheckpointPoolState(device, std::move(state));
  note_native(device);
  for (c10::DataPtr& pointer : delta.dataptrs_allocd) pointer = rewrapped(std::move(pointer));
  return delta;
}

#if WEIR_TORCH_HAS_FIXED_ADDRESS
c10::DataPtr WeirAllocator::allocateWithAddress(std::size_t bytes, void* address) {
  c10::DataPtr pointer = rewrapped(native_.allocateWithAddress(bytes, address));
  note_native(pointer.device().index());
  return pointer;
}
#endif

#if WEIR_TORCH_HAS_CAPTURE_MARKS
void WeirAllocator::markCaptureBegin(c10::DeviceIndex device) { native_.markCaptureBegin(device); }

void WeirAllocator::markCaptureEnd(c10::DeviceIndex device) { native_.markCaptureEnd(device); }
#endif

#if WEIR_TORCH_HAS_USE_COUNT
int WeirAllocator::getPoolUseCount(c10::DeviceIndex device, MempoolId pool) {
  return native_.getPoolUseCount(device, pool);
}
#endif

#if WEIR_TORCH_HAS_ENSURE_POOL
void WeirAllocator::ensureExistsAndIncrefPool(c10::DeviceIndex device, MempoolId pool) {
  native_.ensureExistsAndIncrefPool(device, pool);
}
#endif

#if WEIR_TORCH_HAS_USE_ON_OOM
void WeirAllocator::createOrIncrefPool(c10::DeviceIndex device, MempoolId pool,
                                       WEIR_TORCH_POOL_ALLOCATOR allocator) {
  native_.createOrIncrefPool(device, pool, std::move(allocator));
}

void WeirAllocator::setUseOnOOM(c10::DeviceIndex device,
                                MempoolId pool WEIR_TORCH_USE_ON_OOM_MORE) {
  native_.setUseOnOOM(device, pool WEIR_TORCH_USE_ON_OOM_MORE_PASSED);
  pools_help_ = true;
}
#endif

#if WEIR_TORCH_HAS_NO_SPLIT
void WeirAllocator::setNoSplit(c10::DeviceIndex device, MempoolId pool) {
  native_.setNoSplit(device, pool);
}
#endif

}  // namespace weir::torch_plug
