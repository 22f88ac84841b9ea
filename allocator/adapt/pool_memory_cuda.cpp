#include "allocator/adapt/pool_memory_cuda.hpp"

#include <exception>
#include <optional>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"

namespace weir {

void* PoolMemory::allocate(std::size_t bytes, cudaStream_t stream, std::string& why) {
  const CudaStreams::Use use = streams_->use(stream);
  try {
    return pool_->allocate({bytes}, use.id());
  } catch (const OutOfMemory& error) {
    why = error.what();
    return nullptr;
  }
}

void PoolMemory::deallocate(void* pointer, cudaStream_t stream) noexcept {
  if (pointer == nullptr) return;
  try {
    const CudaStreams::Use use = streams_->use(stream);
    const std::optional<BlockInUse> block = pool_->find(pointer);
    pool_->deallocate(pointer, use.id());
    // Both have points now. The program may destroy both streams at once.
    streams_->fence(use.id());
    if (block && block->home != use.id()) streams_->fence(block->home);
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("a block is not freed: ") + error.what());
  }
}

}  // namespace weir
