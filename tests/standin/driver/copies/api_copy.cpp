// Copies in one piece, and sets.

#include "tests/standin/driver/copies/copy.hpp"
#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/memory/ranges.hpp"
#include "tests/standin/driver/per_thread.hpp"
#include "tests/standin/driver/streams/stream.hpp"

namespace {

using namespace weir::standin;

CUresult copy_now(const char* name, CUstream stream, const Copy& copy) {
  return api(name, Needs::kCanCapture,
             [&](Call& call) { return do_copy(call, stream, copy, false); });
}

CUresult copy_later(const char* name, CUstream stream, const Copy& copy) {
  return api(name, Needs::kContext, [&](Call& call) { return do_copy(call, stream, copy, true); });
}

template <typename T>
CUresult set(const char* name, Needs needs, CUdeviceptr pointer, T value, std::size_t count,
             CUstream handle) {
  return api(name, needs, [&](Call& call) {
    const std::shared_ptr<Stream> stream = find_stream(call, handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (count == 0) return CUDA_SUCCESS;
    if (pointer % sizeof(T) != 0 || count > SIZE_MAX / sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    const Range range = find_range(call.driver, pointer);
    if (range.kind == RangeKind::kPageable || !range.holds(pointer, count * sizeof(T))) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto* first = reinterpret_cast<T*>(pointer);
    Operation operation{.work = [=] { std::fill_n(first, count, value); }};
    touch(call.driver, pointer, operation.touches);
    const CUresult submitted = submit(call, stream, std::move(operation));
    if (submitted == CUDA_SUCCESS) end_launch(call, stream);
    return submitted;
  });
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpy", nullptr, {to, from, bytes});
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_now("cuMemcpyHtoD", nullptr, {to, address(from), bytes, Side::kDevice, Side::kHost});
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoH", nullptr, {address(to), from, bytes, Side::kHost, Side::kDevice});
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoD", nullptr, {to, from, bytes, Side::kDevice, Side::kDevice});
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyAsync", stream, {to, from, bytes});
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyHtoDAsync", stream,
                    {to, address(from), bytes, Side::kDevice, Side::kHost});
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyDtoHAsync", stream,
                    {address(to), from, bytes, Side::kHost, Side::kDevice});
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy_later("cuMemcpyDtoDAsync", stream, {to, from, bytes, Side::kDevice, Side::kDevice});
}

CUresult cuMemsetD8_v2(CUdeviceptr pointer, unsigned char value, size_t count) {
  return set("cuMemsetD8", Needs::kCanCapture, pointer, value, count, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr pointer, unsigned short value, size_t count) {
  return set("cuMemsetD16", Needs::kCanCapture, pointer, value, count, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr pointer, unsigned int value, size_t count) {
  return set("cuMemsetD32", Needs::kCanCapture, pointer, value, count, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr pointer, unsigned char value, size_t count, CUstream stream) {
  return set("cuMemsetD8Async", Needs::kContext, pointer, value, count, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr pointer, unsigned short value, size_t count,
                          CUstream stream) {
  return set("cuMemsetD16Async", Needs::kContext, pointer, value, count, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream) {
  return set("cuMemsetD32Async", Needs::kContext, pointer, value, count, stream);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpy", CU_STREAM_PER_THREAD, {to, from, bytes});
}
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, size_t bytes) {
  return copy_now("cuMemcpyHtoD", CU_STREAM_PER_THREAD,
                  {to, address(from), bytes, Side::kDevice, Side::kHost});
}
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoH", CU_STREAM_PER_THREAD,
                  {address(to), from, bytes, Side::kHost, Side::kDevice});
}
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy_now("cuMemcpyDtoD", CU_STREAM_PER_THREAD,
                  {to, from, bytes, Side::kDevice, Side::kDevice});
}
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return cuMemcpyAsync(to, from, bytes, per_thread(stream));
}
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t bytes,
                                   CUstream stream) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, per_thread(stream));
}
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, per_thread(stream));
}
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                   CUstream stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, per_thread(stream));
}
CUresult cuMemsetD8_v2_ptds(CUdeviceptr pointer, unsigned char value, size_t count) {
  return set("cuMemsetD8", Needs::kCanCapture, pointer, value, count, CU_STREAM_PER_THREAD);
}
CUresult cuMemsetD16_v2_ptds(CUdeviceptr pointer, unsigned short value, size_t count) {
  return set("cuMemsetD16", Needs::kCanCapture, pointer, value, count, CU_STREAM_PER_THREAD);
}
CUresult cuMemsetD32_v2_ptds(CUdeviceptr pointer, unsigned int value, size_t count) {
  return set("cuMemsetD32", Needs::kCanCapture, pointer, value, count, CU_STREAM_PER_THREAD);
}
CUresult cuMemsetD8Async_ptsz(CUdeviceptr pointer, unsigned char value, size_t count,
                              CUstream stream) {
  return cuMemsetD8Async(pointer, value, count, per_thread(stream));
}
CUresult cuMemsetD16Async_ptsz(CUdeviceptr pointer, unsigned short value, size_t count,
                               CUstream stream) {
  return cuMemsetD16Async(pointer, value, count, per_thread(stream));
}
CUresult cuMemsetD32Async_ptsz(CUdeviceptr pointer, unsigned int value, size_t count,
                               CUstream stream) {
  return cuMemsetD32Async(pointer, value, count, per_thread(stream));
}

}  // extern "C"
