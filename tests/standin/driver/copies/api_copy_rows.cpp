// Copies of rows, and between contexts.

#include "tests/standin/driver/copies/copy.hpp"
#include "tests/standin/driver/memory/ranges.hpp"
#include "tests/standin/driver/per_thread.hpp"

namespace {

using namespace weir::standin;

constexpr std::size_t kMostPitch = 2147483647;

/// One side of a copy of rows.
struct Rows {
  std::uintptr_t start = 0;
  std::size_t pitch = 0;
  Side side = Side::kAny;
};

/// `base` is the first byte of the first row. The copy may take only a part of the row.
CUresult find_rows(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
                   std::size_t y, std::size_t pitch, const CUDA_MEMCPY2D& copy, Rows& rows) {
  if (type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED) return CUDA_ERROR_INVALID_VALUE;
  if (copy.WidthInBytes > kMostPitch || x > kMostPitch || pitch > kMostPitch) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // By default rows have no gap.
  rows.pitch = pitch == 0 ? copy.WidthInBytes + x : pitch;
  if (rows.pitch < copy.WidthInBytes + x || y > UINT32_MAX || copy.Height > UINT32_MAX) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  rows.start = (type == CU_MEMORYTYPE_HOST ? address(host) : device) + y * rows.pitch + x;
  if (type == CU_MEMORYTYPE_HOST) rows.side = Side::kHost;
  if (type == CU_MEMORYTYPE_DEVICE) rows.side = Side::kDevice;
  return CUDA_SUCCESS;
}

CUresult copy_rows(const char* name, const CUDA_MEMCPY2D* copy, CUstream stream,
                   bool asynchronous) {
  const Needs needs = asynchronous ? Needs::kContext : Needs::kCanCapture;
  return api(name, needs, [&](Call& call) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Rows to;
    Rows from;
    CUresult found = find_rows(copy->dstMemoryType, copy->dstHost, copy->dstDevice,
                               copy->dstXInBytes, copy->dstY, copy->dstPitch, *copy, to);
    if (found != CUDA_SUCCESS) return found;
    found = find_rows(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                      copy->srcY, copy->srcPitch, *copy, from);
    if (found != CUDA_SUCCESS) return found;
    return do_copy(call, stream,
                   {.to = to.start,
                    .from = from.start,
                    .bytes = copy->WidthInBytes,
                    .to_side = to.side,
                    .from_side = from.side,
                    .rows = copy->Height,
                    .to_pitch = to.pitch,
                    .from_pitch = from.pitch},
                   asynchronous);
  });
}

/// Whether the memory belongs to the device of this context.
bool is_of(Driver& driver, CUdeviceptr pointer, const Context& context) {
  return find_range(driver, pointer).device == context.device;
}

}  // namespace

extern "C" {

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) {
  return copy_rows("cuMemcpy2D", copy, nullptr, false);
}
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return copy_rows("cuMemcpy2DUnaligned", copy, nullptr, false);
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy_rows("cuMemcpy2DAsync", copy, stream, true);
}
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return copy_rows("cuMemcpy2D", copy, CU_STREAM_PER_THREAD, false);
}
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return copy_rows("cuMemcpy2DUnaligned", copy, CU_STREAM_PER_THREAD, false);
}
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return copy_rows("cuMemcpy2DAsync", copy, per_thread(stream), true);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  return api("cuMemcpyPeerAsync", Needs::kContext, [&](Call& call) {
    const Context* receiver = find_context(call.driver, to_context);
    const Context* giver = find_context(call.driver, from_context);
    if (receiver == nullptr || giver == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (bytes != 0 && (!is_of(call.driver, to, *receiver) || !is_of(call.driver, from, *giver))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return do_copy(call, stream, {to, from, bytes, Side::kDevice, Side::kDevice}, true);
  });
}
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, size_t bytes, CUstream stream) {
  return cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, per_thread(stream));
}

}  // extern "C"
