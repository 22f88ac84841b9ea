#include "allocator/memory/upstream_cuda.hpp"
#include "tools/replay/subject/upstreams.hpp"

namespace weir::replay {
namespace {

constexpr int kDevice = 0;

}  // namespace

MakeUpstream cuda_upstreams() {
  return [](Bytes capacity) { return std::make_unique<CudaUpstream>(kDevice, capacity); };
}

Bytes cuda_capacity() { return cuda_memory_info(kDevice).free; }

}  // namespace weir::replay
