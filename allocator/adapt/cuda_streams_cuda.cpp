#include "allocator/adapt/cuda_streams_cuda.hpp"

#include <algorithm>
#include <exception>

#include "allocator/base/error_cuda.hpp"

namespace weir {
namespace {

constexpr std::uint64_t kDefault = ~std::uint64_t{0};  // no id of CUDA's

bool is_default(cudaStream_t stream) noexcept {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

/// A handle may be used again for another stream, an id is not.
std::uint64_t key_of(cudaStream_t stream) {
  if (is_default(stream)) return kDefault;
  unsigned long long id = 0;
  check_cuda(cudaStreamGetId(stream, &id), "cudaStreamGetId");
  return id;
}

}  // namespace

CudaStreams::Use CudaStreams::use(cudaStream_t stream) {
  const std::uint64_t key = key_of(stream);
  const Lock lock(mutex_);
  auto found = streams_.find(key);
  if (found == streams_.end()) {
    if (streams_.size() >= forget_at_) forget_done();
    found = streams_.emplace(key, Followed{}).first;
    try {
      found->second.id = progress_.add(key == kDefault ? cudaStreamLegacy : stream);
    } catch (...) {
      streams_.erase(found);
      throw;
    }
  }
  ++found->second.users;
  return {*this, key, found->second.id};
}

void CudaStreams::end(std::uint64_t key) noexcept {
  const Lock lock(mutex_);
  --streams_.find(key)->second.users;
}

void CudaStreams::forget_done() {
  std::erase_if(streams_, [&](const auto& entry) {
    const Followed& followed = entry.second;
    return followed.users == 0 && entry.first != kDefault &&
           progress_.remove_if_passed(followed.id);
  });
  forget_at_ = std::max(kFew, 2 * streams_.size());
}

void CudaStreams::fence(StreamId stream) noexcept {
  try {
    progress_.fence(stream);
  } catch (const std::exception&) {
    // A later request for the point records it, or reports why the device failed.
  }
}

}  // namespace weir
