// Batches of copies. They run in the given order; a device may choose another one.

#include <cuda.h>

#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

#if CUDA_VERSION >= 12080

#include "tests/standin/driver/copies/copy.hpp"
#include "tests/standin/driver/per_thread.hpp"

namespace {

using namespace weir::standin;

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/// Calls `enqueue(call, i)` for each of `count` copies, up to the first that fails.
template <typename Enqueue>
CUresult batch(const char* name, std::size_t count, std::size_t* failed, CUstream stream,
               Enqueue enqueue) {
  return api(name, Needs::kContext, [&](Call& call) {
    if (count == 0 || stream == nullptr || stream == CU_STREAM_LEGACY) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const CUresult code = enqueue(call, i);
      if (code == CUDA_SUCCESS) continue;
      if (failed != nullptr) *failed = i;
      return code;
    }
    return CUDA_SUCCESS;
  });
}

CUresult copies(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                const CUmemcpyAttributes* attributes, const size_t* indices, size_t attribute_count,
                size_t* failed, CUstream stream) {
  return batch("cuMemcpyBatchAsync", count, failed, stream, [&](Call& call, std::size_t i) {
    if (to == nullptr || from == nullptr || bytes == nullptr || attributes == nullptr ||
        indices == nullptr || attribute_count == 0 || attribute_count > count || indices[0] != 0 ||
        !is_order(attributes[0].srcAccessOrder)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return do_copy(call, stream, {to[i], from[i], bytes[i]}, true);
  });
}

/// The start of a layer at one side of a copy, and the distance of its rows.
struct Layout {
  std::size_t row = 0;
  std::size_t layer = 0;
};
Layout layout_of(const CUmemcpy3DOperand& side, const CUextent3D& extent) {
  const auto& pointer = side.op.ptr;
  const std::size_t row = pointer.rowLength != 0 ? pointer.rowLength : extent.width;
  return {row, row * (pointer.layerHeight != 0 ? pointer.layerHeight : extent.height)};
}

CUresult cube(Call& call, const CUDA_MEMCPY3D_BATCH_OP& copy, CUstream stream) {
  if (copy.dst.type == CU_MEMCPY_OPERAND_TYPE_ARRAY ||
      copy.src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;  // arrays hold nothing
  }
  const Layout to = layout_of(copy.dst, copy.extent);
  const Layout from = layout_of(copy.src, copy.extent);
  if (copy.extent.width == 0 || copy.extent.height == 0 || copy.extent.depth == 0 ||
      to.row < copy.extent.width || from.row < copy.extent.width ||
      !is_order(copy.srcAccessOrder)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (std::size_t z = 0; z < copy.extent.depth; ++z) {
    const CUresult code = do_copy(call, stream,
                                  {.to = copy.dst.op.ptr.ptr + z * to.layer,
                                   .from = copy.src.op.ptr.ptr + z * from.layer,
                                   .bytes = copy.extent.width,
                                   .rows = copy.extent.height,
                                   .to_pitch = to.row,
                                   .from_pitch = from.row},
                                  true);
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

CUresult cubes(size_t count, const CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
               unsigned long long flags, CUstream stream) {
  return batch("cuMemcpy3DBatchAsync", count, failed, stream, [&](Call& call, std::size_t i) {
    return list == nullptr || flags != 0 ? CUDA_ERROR_INVALID_VALUE : cube(call, list[i], stream);
  });
}

}  // namespace

extern "C" {

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, failed, stream);
}
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                 CUmemcpyAttributes* attributes, size_t* indices,
                                 size_t attribute_count, size_t* failed, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, failed,
                per_thread(stream));
}
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                              unsigned long long flags, CUstream stream) {
  return cubes(count, list, failed, flags, stream);
}
CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                                   unsigned long long flags, CUstream stream) {
  return cubes(count, list, failed, flags, per_thread(stream));
}

#if CUDA_VERSION >= 13000
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indices,
                               size_t attribute_count, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, nullptr, stream);
}
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                                    CUmemcpyAttributes* attributes, size_t* indices,
                                    size_t attribute_count, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, nullptr,
                per_thread(stream));
}
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* list,
                                 unsigned long long flags, CUstream stream) {
  return cubes(count, list, nullptr, flags, stream);
}
CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP* list,
                                      unsigned long long flags, CUstream stream) {
  return cubes(count, list, nullptr, flags, per_thread(stream));
}
#endif

}  // extern "C"

#endif
