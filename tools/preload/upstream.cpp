#include "tools/preload/upstream.hpp"

#include <string>

#include "allocator/log.hpp"

namespace weir::preload {

void* DriverUpstream::allocate(Bytes size) {
  if (gone_.load(std::memory_order_relaxed) || !account_.take(size)) return nullptr;
  const Inside inside;
  const ContextScope scope(driver_, context_);
  CUdeviceptr pointer = 0;
  const CUresult code =
      scope.good() ? driver_.cuMemAlloc_v2(&pointer, size.count) : CUDA_ERROR_INVALID_CONTEXT;
  if (code == CUDA_SUCCESS) {
    used_.fetch_add(size.count, std::memory_order_relaxed);
    return reinterpret_cast<void*>(pointer);
  }
  account_.give_back(size);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) return nullptr;
  throw DriverError("cuMemAlloc", code);
}

void DriverUpstream::deallocate(void* pointer, Bytes size) noexcept {
  if (gone_.load(std::memory_order_relaxed)) return;
  if (fences_.capturing()) {
    hold(pointer, size);
    if (!fences_.capturing()) give_back_held();  // it ended meanwhile
    return;
  }
  const Inside inside;
  const ContextScope scope(driver_, context_);
  const CUresult code = scope.good() ? driver_.cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pointer))
                                     : CUDA_ERROR_INVALID_CONTEXT;
  if (code == CUDA_SUCCESS) {
    let_go(size);
    account_.give_back(size);
    return;
  }
  // It stays in the books: it is out for ever.
  log(LogLevel::kError, format_bytes(size) + " cannot be given back: cuMemFree failed (" +
                            std::to_string(static_cast<int>(code)) + ")");
}

void DriverUpstream::hold(void* pointer, Bytes size) noexcept {
  try {
    const Lock lock(mutex_);
    held_.emplace_back(pointer, size);
  } catch (const std::exception&) {
    log(LogLevel::kError, format_bytes(size) + " cannot be given back: the host's memory is full");
  }
}

void DriverUpstream::give_back_held() noexcept {
  Lock lock(mutex_);
  const auto held = std::exchange(held_, {});
  lock.unlock();
  for (const auto& [pointer, size] : held) deallocate(pointer, size);
}

void DriverUpstream::let_go(Bytes size) noexcept {
  used_.fetch_sub(size.count, std::memory_order_relaxed);
}

void DriverUpstream::forget() noexcept {
  gone_.store(true);
  account_.give_back({used_.exchange(0)});
}

}  // namespace weir::preload
