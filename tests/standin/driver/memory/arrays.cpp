// Arrays: their bytes are counted against the device, and have no contents. Their extents have no
// limit.

#include <algorithm>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace {

using namespace weir::standin;

/// Bytes of one channel; 0 for a format without channels.
std::size_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

void check(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  constexpr unsigned int kFlags = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
                                  CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
  require((wanted.Flags & ~kFlags) == 0, CUDA_ERROR_NOT_SUPPORTED);
  require(wanted.NumChannels == 1 || wanted.NumChannels == 2 || wanted.NumChannels == 4);
  // The first of the formats that pack or compress, which are not supported.
  constexpr int kFirstPacked = 0x50;
  const bool known = channel_bytes(wanted.Format) != 0;
  require(known || wanted.Format < kFirstPacked, CUDA_ERROR_NOT_SUPPORTED);
  require(known && wanted.Width != 0);
}

std::size_t level_bytes(const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned int level) {
  const auto extent = [=](std::size_t whole) { return std::max<std::size_t>(whole >> level, 1); };
  constexpr unsigned int kLayers = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP;
  // Each level has the same number of layers.
  const std::size_t depth = (wanted.Flags & kLayers) != 0 ? wanted.Depth : extent(wanted.Depth);
  return channel_bytes(wanted.Format) * wanted.NumChannels * extent(wanted.Width) *
         extent(wanted.Height) * depth;
}

/// The wanted number of levels, or the possible one if that is less.
unsigned int levels_of(const CUDA_ARRAY3D_DESCRIPTOR& wanted, unsigned int levels) {
  std::size_t largest = std::max(wanted.Width, wanted.Height);
  if ((wanted.Flags & CUDA_ARRAY3D_LAYERED) == 0) largest = std::max(largest, wanted.Depth);
  unsigned int most = 1;
  for (; largest > 1; largest /= 2) ++most;
  return std::clamp(levels, 1U, most);
}

/// `Handle` is of `arrays`, which are those of the driver or the mipmapped ones.
template <typename Handle>
CUresult create(const char* name, Handles<Handle, Array> Driver::*arrays, Handle* handle,
                const CUDA_ARRAY3D_DESCRIPTOR* wanted, unsigned int levels) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    require(handle != nullptr && wanted != nullptr);
    check(*wanted);
    std::size_t bytes = 0;
    for (unsigned int level = 0; level < levels_of(*wanted, levels); ++level) {
      bytes += level_bytes(*wanted, level);
    }
    const std::size_t charged = round_up(bytes, kAlignment);
    call.context->device->charge(charged);
    *handle = (call.driver.*arrays).add({.context = call.context, .charged = charged});
  });
}

template <typename Handle>
CUresult destroy(const char* name, Handles<Handle, Array> Driver::*arrays, Handle handle) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    const Array array = (call.driver.*arrays).get(handle, CUDA_ERROR_INVALID_HANDLE);
    Device& device = *array.context->device;
    (call.driver.*arrays).remove(handle);
    wait_for_device(call, device);
    device.credit(array.charged);
  });
}

}  // namespace

extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  CUDA_ARRAY3D_DESCRIPTOR flat{};
  if (wanted != nullptr) {
    flat.Width = wanted->Width;
    flat.Height = wanted->Height;
    flat.Format = wanted->Format;
    flat.NumChannels = wanted->NumChannels;
  }
  return create("cuArrayCreate", &Driver::arrays, array, wanted == nullptr ? nullptr : &flat, 1);
}
CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return create("cuArray3DCreate", &Driver::arrays, array, wanted, 1);
}
CUresult cuArrayDestroy(CUarray array) { return destroy("cuArrayDestroy", &Driver::arrays, array); }

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                unsigned int levels) {
  return create("cuMipmappedArrayCreate", &Driver::mipmapped_arrays, array, wanted, levels);
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy("cuMipmappedArrayDestroy", &Driver::mipmapped_arrays, array);
}

}  // extern "C"
