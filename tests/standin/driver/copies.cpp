// Copies and sets. When a copy returns, it has read everything from pageable memory, and has
// written everything to pageable memory. Other memory is left to the stream.

#include <algorithm>
#include <cstring>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

// <cuda.h> defines these as the later versions' names.
#undef cuMemcpy3DBatchAsync
#undef cuMemcpyBatchAsync

namespace {

using namespace weir::standin;

/// The kind of address that a function requires.
enum class Side { kAny, kHost, kDevice };

/// `rows` of `bytes` each, which begin every `to_pitch` and `from_pitch` bytes.
struct Copy {
  std::uintptr_t to = 0;
  std::uintptr_t from = 0;
  std::size_t bytes = 0;
  Side to_side = Side::kAny;
  Side from_side = Side::kAny;
  std::size_t rows = 1;
  std::size_t to_pitch = 0;
  std::size_t from_pitch = 0;
};

std::uintptr_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
std::uintptr_t address(CUdeviceptr pointer) { return pointer; }
Side side_of(const void*) { return Side::kHost; }
Side side_of(CUdeviceptr) { return Side::kDevice; }

/// In one piece, between the sides that the types tell.
template <typename To, typename From>
Copy piece(To to, From from, std::size_t bytes) {
  return {address(to), address(from), bytes, side_of(to), side_of(from)};
}

/// From the first byte of the first row to the last one of the last.
std::size_t span(const Copy& copy, std::size_t pitch) {
  return (copy.rows - 1) * pitch + copy.bytes;
}

bool fits(const Range& range, std::uintptr_t address, std::size_t bytes, Side side) {
  if (side == Side::kDevice && range.kind == RangeKind::kPageable) return false;
  if (side == Side::kHost && range.kind == RangeKind::kDevice) return false;
  return range.holds(address, bytes);
}

/// Moves rows and does not copy them: those of one copy may overlap.
void move_rows(const Copy& copy, const unsigned char* from) {
  auto* to = reinterpret_cast<unsigned char*>(copy.to);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    std::memmove(to + row * copy.to_pitch, from + row * copy.from_pitch, copy.bytes);
  }
}

/// The operation of a copy. Reads pageable memory now.
Operation make_copy(const Copy& copy, bool staged) {
  const auto* from = reinterpret_cast<const unsigned char*>(copy.from);
  if (!staged) return {.work = [=] { move_rows(copy, from); }};
  auto read =
      std::make_shared<std::vector<unsigned char>>(from, from + span(copy, copy.from_pitch));
  return {.work = [=] { move_rows(copy, read->data()); }};
}

void do_copy(Call& call, CUstream handle, const Copy& copy, bool asynchronous) {
  const std::shared_ptr<Stream> stream = get_stream(call, handle);
  if (copy.bytes == 0 || copy.rows == 0) return;
  require(copy.to != 0 && copy.from != 0);
  const Range to = find_range(call.driver, copy.to);
  const Range from = find_range(call.driver, copy.from);
  require(fits(to, copy.to, span(copy, copy.to_pitch), copy.to_side) &&
          fits(from, copy.from, span(copy, copy.from_pitch), copy.from_side));
  const bool to_pageable = to.kind == RangeKind::kPageable;
  const bool from_pageable = from.kind == RangeKind::kPageable;
  if (to_pageable || from_pageable) refuse_capturing(*stream);
  Operation operation = make_copy(copy, from_pageable);
  touch(call.driver, copy.to, operation.touches);
  touch(call.driver, copy.from, operation.touches);
  submit(call, stream, std::move(operation));
  if (stream->capture) return;
  const bool in_device = to.kind == RangeKind::kDevice && from.kind == RangeKind::kDevice;
  end_launch(call, stream);
  if (to_pageable || (!asynchronous && !in_device)) wait_for(call, {{stream, stream->enqueued}});
  pass(call.context->broken);
}

CUresult copy_now(const char* name, CUstream stream, const Copy& copy) {
  return api(name, Needs::kCanCapture, [&](Call& call) { do_copy(call, stream, copy, false); });
}
CUresult copy_later(const char* name, CUstream stream, const Copy& copy) {
  return api(name, Needs::kContext, [&](Call& call) { do_copy(call, stream, copy, true); });
}

template <typename T>
CUresult set(Needs needs, const char* name, CUstream handle, CUdeviceptr pointer, T value,
             std::size_t count) {
  return api(name, needs, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    if (count == 0) return;
    require(pointer % sizeof(T) == 0 && count <= SIZE_MAX / sizeof(T));
    const Range range = find_range(call.driver, pointer);
    require(range.kind != RangeKind::kPageable && range.holds(pointer, count * sizeof(T)));
    auto* first = reinterpret_cast<T*>(pointer);
    Operation operation{.work = [=] { std::fill_n(first, count, value); }};
    touch(call.driver, pointer, operation.touches);
    submit(call, stream, std::move(operation));
    end_launch(call, stream);
  });
}

template <typename... A>
CUresult set_now(A... arguments) {
  return set(Needs::kCanCapture, arguments...);
}
template <typename... A>
CUresult set_later(A... arguments) {
  return set(Needs::kContext, arguments...);
}

constexpr std::size_t kMostPitch = 2147483647;

/// One side of a copy of rows.
struct Rows {
  std::uintptr_t start = 0;
  std::size_t pitch = 0;
  Side side = Side::kAny;
};

/// `base` is the first byte of the first row. The copy may take only a part of the row.
Rows find_rows(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
               std::size_t y, std::size_t pitch, const CUDA_MEMCPY2D& copy) {
  require(type != CU_MEMORYTYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
  require(type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED);
  require(copy.WidthInBytes <= kMostPitch && x <= kMostPitch && pitch <= kMostPitch);
  Rows rows;
  // By default rows have no gap.
  rows.pitch = pitch == 0 ? copy.WidthInBytes + x : pitch;
  require(rows.pitch >= copy.WidthInBytes + x && y <= UINT32_MAX && copy.Height <= UINT32_MAX);
  rows.start = (type == CU_MEMORYTYPE_HOST ? address(host) : device) + y * rows.pitch + x;
  if (type == CU_MEMORYTYPE_HOST) rows.side = Side::kHost;
  if (type == CU_MEMORYTYPE_DEVICE) rows.side = Side::kDevice;
  return rows;
}

CUresult copy_rows(const char* name, CUstream stream, const CUDA_MEMCPY2D* wanted,
                   bool asynchronous = false) {
  return api(name, asynchronous ? Needs::kContext : Needs::kCanCapture, [&](Call& call) {
    const CUDA_MEMCPY2D& copy = given(wanted);
    const Rows to = find_rows(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstXInBytes,
                              copy.dstY, copy.dstPitch, copy);
    const Rows from = find_rows(copy.srcMemoryType, copy.srcHost, copy.srcDevice, copy.srcXInBytes,
                                copy.srcY, copy.srcPitch, copy);
    do_copy(call, stream,
            {.to = to.start,
             .from = from.start,
             .bytes = copy.WidthInBytes,
             .to_side = to.side,
             .from_side = from.side,
             .rows = copy.Height,
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

// A function without a stream for each default stream. CALL gets its name, that stream, and the
// rest.
#define BOTH(name, version, parameters, call, ...)                                \
  CUresult name##version parameters { return call(#name, nullptr, __VA_ARGS__); } \
  CUresult name##version##_ptds parameters {                                      \
    return call(#name, CU_STREAM_PER_THREAD, __VA_ARGS__);                        \
  }
// A function with a stream, likewise.
#define WITH_STREAM(name, version, parameters, call, ...)                        \
  CUresult name##version parameters { return call(#name, stream, __VA_ARGS__); } \
  CUresult name##version##_ptsz parameters { return call(#name, per_thread(stream), __VA_ARGS__); }

BOTH(cuMemcpy, , (CUdeviceptr to, CUdeviceptr from, size_t bytes), copy_now, Copy{to, from, bytes})
BOTH(cuMemcpyHtoD, _v2, (CUdeviceptr to, const void* from, size_t bytes), copy_now,
     piece(to, from, bytes))
BOTH(cuMemcpyDtoH, _v2, (void* to, CUdeviceptr from, size_t bytes), copy_now,
     piece(to, from, bytes))
BOTH(cuMemcpyDtoD, _v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), copy_now,
     piece(to, from, bytes))
WITH_STREAM(cuMemcpyAsync, , (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
            copy_later, Copy{to, from, bytes})
WITH_STREAM(cuMemcpyHtoDAsync, _v2,
            (CUdeviceptr to, const void* from, size_t bytes, CUstream stream), copy_later,
            piece(to, from, bytes))
WITH_STREAM(cuMemcpyDtoHAsync, _v2, (void* to, CUdeviceptr from, size_t bytes, CUstream stream),
            copy_later, piece(to, from, bytes))
WITH_STREAM(cuMemcpyDtoDAsync, _v2,
            (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), copy_later,
            piece(to, from, bytes))

BOTH(cuMemcpy2D, _v2, (const CUDA_MEMCPY2D* copy), copy_rows, copy)
BOTH(cuMemcpy2DUnaligned, _v2, (const CUDA_MEMCPY2D* copy), copy_rows, copy)
WITH_STREAM(cuMemcpy2DAsync, _v2, (const CUDA_MEMCPY2D* copy, CUstream stream), copy_rows, copy,
            true)

BOTH(cuMemsetD8, _v2, (CUdeviceptr pointer, unsigned char value, size_t count), set_now, pointer,
     value, count)
BOTH(cuMemsetD16, _v2, (CUdeviceptr pointer, unsigned short value, size_t count), set_now, pointer,
     value, count)
BOTH(cuMemsetD32, _v2, (CUdeviceptr pointer, unsigned int value, size_t count), set_now, pointer,
     value, count)
WITH_STREAM(cuMemsetD8Async, ,
            (CUdeviceptr pointer, unsigned char value, size_t count, CUstream stream), set_later,
            pointer, value, count)
WITH_STREAM(cuMemsetD16Async, ,
            (CUdeviceptr pointer, unsigned short value, size_t count, CUstream stream), set_later,
            pointer, value, count)
WITH_STREAM(cuMemsetD32Async, ,
            (CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream), set_later,
            pointer, value, count)

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream stream) {
  return api("cuMemcpyPeerAsync", Needs::kContext, [&](Call& call) {
    const Context* receiver = find_context(call.driver, to_context);
    const Context* giver = find_context(call.driver, from_context);
    require(receiver != nullptr && giver != nullptr, CUDA_ERROR_INVALID_CONTEXT);
    require(bytes == 0 || (is_of(call.driver, to, *receiver) && is_of(call.driver, from, *giver)));
    do_copy(call, stream, piece(to, from, bytes), true);
  });
}
WEIR_PTSZ(cuMemcpyPeerAsync,
          (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
           size_t bytes, CUstream stream),
          to, to_context, from, from_context, bytes, stream)

}  // extern "C"

#undef BOTH
#undef WITH_STREAM

#if CUDA_VERSION >= 12080

// Batches of copies. They run in the given order; a device may choose another one.
namespace {

bool is_order(CUmemcpySrcAccessOrder order) {
  return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM && order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/// Calls `enqueue(call, i)` for each of `count` copies, up to the first that fails.
template <typename Enqueue>
CUresult batch(const char* name, std::size_t count, std::size_t* failed, CUstream stream,
               Enqueue enqueue) {
  return api(name, Needs::kContext, [&](Call& call) {
    require(count != 0 && stream != nullptr && stream != CU_STREAM_LEGACY);
    std::size_t i = 0;
    try {
      for (; i < count; ++i) enqueue(call, i);
    } catch (const Refused&) {
      if (failed != nullptr) *failed = i;
      throw;
    }
  });
}

CUresult copies(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                const CUmemcpyAttributes* attributes, const size_t* indices, size_t attribute_count,
                size_t* failed, CUstream stream) {
  return batch("cuMemcpyBatchAsync", count, failed, stream, [&](Call& call, std::size_t i) {
    require(to != nullptr && from != nullptr && bytes != nullptr && attributes != nullptr &&
            indices != nullptr && attribute_count != 0 && attribute_count <= count &&
            indices[0] == 0 && is_order(attributes[0].srcAccessOrder));
    do_copy(call, stream, {to[i], from[i], bytes[i]}, true);
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

void do_cube(Call& call, const CUDA_MEMCPY3D_BATCH_OP& copy, CUstream stream) {
  require(copy.dst.type != CU_MEMCPY_OPERAND_TYPE_ARRAY &&
              copy.src.type != CU_MEMCPY_OPERAND_TYPE_ARRAY,
          CUDA_ERROR_NOT_SUPPORTED);  // arrays hold nothing
  const Layout to = layout_of(copy.dst, copy.extent);
  const Layout from = layout_of(copy.src, copy.extent);
  require(copy.extent.width != 0 && copy.extent.height != 0 && copy.extent.depth != 0 &&
          to.row >= copy.extent.width && from.row >= copy.extent.width &&
          is_order(copy.srcAccessOrder));
  for (std::size_t z = 0; z < copy.extent.depth; ++z) {
    do_copy(call, stream,
            {.to = copy.dst.op.ptr.ptr + z * to.layer,
             .from = copy.src.op.ptr.ptr + z * from.layer,
             .bytes = copy.extent.width,
             .rows = copy.extent.height,
             .to_pitch = to.row,
             .from_pitch = from.row},
            true);
  }
}

CUresult cubes(size_t count, const CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
               unsigned long long flags, CUstream stream) {
  return batch("cuMemcpy3DBatchAsync", count, failed, stream, [&](Call& call, std::size_t i) {
    require(list != nullptr && flags == 0);
    do_cube(call, list[i], stream);
  });
}

}  // namespace

extern "C" {

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, failed, stream);
}
WEIR_PTSZ(cuMemcpyBatchAsync,
          (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
           CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count, size_t* failed,
           CUstream stream),
          to, from, bytes, count, attributes, indices, attribute_count, failed, stream)
CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                              unsigned long long flags, CUstream stream) {
  return cubes(count, list, failed, flags, stream);
}
WEIR_PTSZ(cuMemcpy3DBatchAsync,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed, unsigned long long flags,
           CUstream stream),
          count, list, failed, flags, stream)

#if CUDA_VERSION >= 13000
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indices,
                               size_t attribute_count, CUstream stream) {
  return copies(to, from, bytes, count, attributes, indices, attribute_count, nullptr, stream);
}
WEIR_PTSZ(cuMemcpyBatchAsync_v2,
          (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
           CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
           CUstream stream),
          to, from, bytes, count, attributes, indices, attribute_count, stream)
CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP* list,
                                 unsigned long long flags, CUstream stream) {
  return cubes(count, list, nullptr, flags, stream);
}
WEIR_PTSZ(cuMemcpy3DBatchAsync_v2,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags, CUstream stream),
          count, list, flags, stream)
#endif

}  // extern "C"

#endif
