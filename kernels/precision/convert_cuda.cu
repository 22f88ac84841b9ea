#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/precision/convert_cuda.hpp"
#include "kernels/precision/words_cuda.hpp"

namespace weir::cuda {
namespace {

template <HalfKind Kind>
struct ToHalf {
  static constexpr std::size_t kGroup = 8;
  const float* x;
  std::uint16_t* words;

  __device__ void one(std::size_t i) const { words[i] = half_of_float<Kind>(x[i]); }
  __device__ void group(std::size_t i) const {
    store_eight<Kind>(words + i, load_four(x + i), load_four(x + i + 4));
  }
};

template <HalfKind Kind>
struct FromHalf {
  static constexpr std::size_t kGroup = 4;  // more would put gaps between a warp's writes
  const std::uint16_t* words;
  float* x;

  __device__ void one(std::size_t i) const { x[i] = float_of_half<Kind>(words[i]); }
  __device__ void group(std::size_t i) const {
    const uint2 pairs = *reinterpret_cast<const uint2*>(words + i);
    store_four(x + i, float4{low_of<Kind>(pairs.x), high_of<Kind>(pairs.x), low_of<Kind>(pairs.y),
                             high_of<Kind>(pairs.y)});
  }
};

template <HalfKind Kind>
void launch_to_half(cudaStream_t stream, std::span<const float> x, std::uint16_t* words) {
  launch_each("to_half", stream, ToHalf<Kind>{x.data(), words}, x.size(), x.data(), words);
}

template <HalfKind Kind>
void launch_from_half(cudaStream_t stream, std::span<const std::uint16_t> words, float* x) {
  launch_each("from_half", stream, FromHalf<Kind>{words.data(), x}, words.size(), words.data(), x);
}

}  // namespace

void to_half(cudaStream_t stream, std::span<const float> x, std::span<std::uint16_t> words,
             HalfKind kind) {
  require_elements({"to_half", "words"}, words.size(), x.size());
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? launch_to_half<HalfKind::kBf16> : launch_to_half<HalfKind::kFp16>)(stream, x,
                                                                             words.data());
}

void from_half(cudaStream_t stream, std::span<const std::uint16_t> words, std::span<float> x,
               HalfKind kind) {
  require_elements({"from_half", "x"}, x.size(), words.size());
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? launch_from_half<HalfKind::kBf16> : launch_from_half<HalfKind::kFp16>)(stream, words,
                                                                                 x.data());
}

}  // namespace weir::cuda
