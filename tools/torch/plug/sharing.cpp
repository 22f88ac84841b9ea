// Memory that another process uses as well.

#include <c10/util/Exception.h>

#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {

#if WEIR_TORCH_HAS_SHARING
native_api::ShareableHandle WeirAllocator::shareIpcHandle(void* pointer) {
  TORCH_CHECK(!blocks_.find(pointer), "Weir does not share this memory between processes");
  return native_.shareIpcHandle(pointer);
}
#endif

std::shared_ptr<void> WeirAllocator::getIpcDevPtr(std::string handle) {
  return native_.getIpcDevPtr(std::move(handle));
}

}  // namespace weir::torch_plug
