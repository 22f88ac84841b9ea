// Arrays of two dimensions.

#include <array>

#include "tests/standin/runtime/runtime.hpp"

namespace {

using namespace weir::standin;

/// False if there is no such format.
bool find_format(cudaChannelFormatKind kind, int bits, CUarray_format* format) {
  const int step = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : -1;
  if (step < 0) return false;
  switch (kind) {
    case cudaChannelFormatKindSigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_SIGNED_INT8 + step);
      return true;
    case cudaChannelFormatKindUnsigned:
      *format = static_cast<CUarray_format>(CU_AD_FORMAT_UNSIGNED_INT8 + step);
      return true;
    case cudaChannelFormatKindFloat:
      *format = bits == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      return bits != 8;
    default:
      return false;
  }
}

/// Channels are as wide as the first, and absent ones have no bits.
bool describe(const cudaChannelFormatDesc& wanted, CUDA_ARRAY3D_DESCRIPTOR* out) {
  const std::array bits{wanted.x, wanted.y, wanted.z, wanted.w};
  unsigned int channels = 0;
  while (channels < 4 && bits.at(channels) == wanted.x) ++channels;
  for (std::size_t i = channels; i < 4; ++i) {
    if (bits.at(i) != 0) return false;
  }
  out->NumChannels = channels;
  return channels != 3 && find_format(wanted.f, wanted.x, &out->Format);
}

}  // namespace

extern "C" {

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* wanted, size_t width,
                            size_t height, unsigned int flags) {
  return with_context([&](const Calls& driver) {
    if (array == nullptr || wanted == nullptr) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR own{};
    if (!describe(*wanted, &own)) {
      return static_cast<CUresult>(cudaErrorInvalidChannelDescriptor);
    }
    own.Width = width;
    own.Height = height;
    own.Flags = flags;
    auto* made = reinterpret_cast<CUarray*>(array);
    if (flags != cudaArrayDefault) return driver.cuArray3DCreate(made, &own);
    CUDA_ARRAY_DESCRIPTOR flat{};
    flat.Width = width;
    flat.Height = height;
    flat.Format = own.Format;
    flat.NumChannels = own.NumChannels;
    return driver.cuArrayCreate(made, &flat);
  });
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return with_context([&](const Calls& driver) {
    return array == nullptr ? CUDA_SUCCESS
                            : driver.cuArrayDestroy(reinterpret_cast<CUarray>(array));
  });
}

}  // extern "C"
