// Passes over tensors whose shape does not matter: operations on each element alone, random
// numbers, conversions, and sums.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/step_state.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sums/sums_cuda.hpp"

namespace weir::cuda {
namespace {

struct Fill {
  static constexpr std::size_t kGroup = 4;
  float* out;
  float value;

  __device__ void one(std::size_t i) const { out[i] = value; }
  __device__ void group(std::size_t i) const {
    store_four(out + i, float4{value, value, value, value});
  }
};

struct Add {
  static constexpr std::size_t kGroup = 4;
  const float* x;
  float* y;

  __device__ float operator()(float total, float term) const { return rounded_add(total, term); }
  __device__ void one(std::size_t i) const { y[i] = (*this)(y[i], x[i]); }
  __device__ void group(std::size_t i) const {
    store_four(y + i, each_of_four(*this, load_four(y + i), load_four(x + i)));
  }
};

__device__ inline float4 times(float4 a, float factor) {
  return each_of_four([factor](float one) { return rounded_multiply(one, factor); }, a);
}

struct Scale {
  static constexpr std::size_t kGroup = 4;
  float alpha;
  float* x;

  __device__ void one(std::size_t i) const { x[i] = rounded_multiply(x[i], alpha); }
  __device__ void group(std::size_t i) const { store_four(x + i, times(load_four(x + i), alpha)); }
};

/// Each thread draws the four numbers of a block; the first and the last block may be partly
/// outside `out`. All others start `skip` elements before a multiple of four, so all or none are
/// aligned.
__global__ void normal_kernel(std::uint64_t seed, std::uint64_t random_stream, std::uint64_t first,
                              float* out, std::size_t count) {
  const std::size_t skip = first % 4;
  const std::size_t blocks = (skip + count - 1) / 4 + 1;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t b = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; b < blocks;
       b += stride) {
    const NormalBlock drawn = normal_block(seed, random_stream, first / 4 + b);
    const float4 numbers{drawn.front.first, drawn.front.second, drawn.back.first,
                         drawn.back.second};
    const std::size_t begin = 4 * b;  // counted from `skip` before out[0]
    const bool whole = begin >= skip && begin + 4 <= skip + count;
    if (whole && reinterpret_cast<std::uintptr_t>(out + (begin - skip)) % 16 == 0) {
      store_four(out + (begin - skip), numbers);
      continue;
    }
    const float each[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
    for (std::size_t i = 0; i < 4; ++i) {
      if (begin + i >= skip && begin + i < skip + count) out[begin + i - skip] = each[i];
    }
  }
}

/// Rounds two neighbours, the first into the lower half.
template <HalfKind Kind>
__device__ inline unsigned pack_two(float first, float second) {
  return half_of_float<Kind>(first) | (static_cast<unsigned>(half_of_float<Kind>(second)) << 16U);
}

/// Rounds eight neighbours; `words` must be aligned to 16 bytes.
template <HalfKind Kind>
__device__ inline void store_eight(std::uint16_t* words, float4 low, float4 high) {
  *reinterpret_cast<uint4*>(words) =
      uint4{pack_two<Kind>(low.x, low.y), pack_two<Kind>(low.z, low.w),
            pack_two<Kind>(high.x, high.y), pack_two<Kind>(high.z, high.w)};
}

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

struct FlagNotFinite {
  static constexpr std::size_t kGroup = 4;
  const float* x;
  StepState* state;

  // Threads that find one all write the same word, so their order does not matter.
  __device__ void one(std::size_t i) const {
    if (!is_finite(x[i])) state->overflow = 1;
  }
  __device__ void group(std::size_t i) const {
    const float4 a = load_four(x + i);
    if (!is_finite(a.x) || !is_finite(a.y) || !is_finite(a.z) || !is_finite(a.w)) {
      state->overflow = 1;
    }
  }
};

template <HalfKind Kind>
struct ScaleToHalf {
  static constexpr std::size_t kGroup = 8;
  const StepState* state;
  float* x;
  std::uint16_t* words;

  __device__ void one(std::size_t i) const {
    const float scaled = rounded_multiply(x[i], state->loss_scale);
    x[i] = scaled;
    words[i] = half_of_float<Kind>(scaled);
  }
  __device__ void group(std::size_t i) const {
    const float scale = state->loss_scale;
    const float4 low = times(load_four(x + i), scale);
    const float4 high = times(load_four(x + i + 4), scale);
    store_four(x + i, low);
    store_four(x + i + 4, high);
    store_eight<Kind>(words + i, low, high);
  }
};

}  // namespace

void fill(Stream stream, std::span<float> out, float value) {
  launch_each("fill", stream, Fill{out.data(), value}, out.size(), out.data());
}

void add(Stream stream, std::span<const float> x, std::span<float> total) {
  require_elements({"add", "x"}, x.size(), total.size());
  launch_each("add", stream, Add{x.data(), total.data()}, total.size(), x.data(), total.data());
}

void scale(Stream stream, float alpha, std::span<float> x) {
  launch_each("scale", stream, Scale{alpha, x.data()}, x.size(), x.data());
}

void fill_normal(Stream stream, std::uint64_t seed, std::uint64_t random_stream,
                 std::span<float> out, std::uint64_t first) {
  require_numbers(first, out.size());
  if (out.empty()) return;
  launch("fill_normal", normal_kernel, grid_for(out.size() / 4 + 2), stream, seed, random_stream,
         first, out.data(), out.size());
}

void to_half(Stream stream, std::span<const float> x, std::span<std::uint16_t> words,
             HalfKind kind) {
  require_elements({"to_half", "words"}, words.size(), x.size());
  with_half(kind, [&]<HalfKind Kind>() {
    launch_each("to_half", stream, ToHalf<Kind>{x.data(), words.data()}, x.size(), x.data(),
                words.data());
  });
}

void flag_not_finite(Stream stream, std::span<const float> x, std::span<float> state) {
  StepState* const found = device_step_state("flag_not_finite", state);
  launch_each("flag_not_finite", stream, FlagNotFinite{x.data(), found}, x.size(), x.data());
}

void scale_to_half(Stream stream, std::span<const float> state, std::span<float> x,
                   std::span<std::uint16_t> words, HalfKind kind) {
  require_elements({"scale_to_half", "words"}, words.size(), x.size());
  const StepState* const found = device_step_state("scale_to_half", state);
  with_half(kind, [&]<HalfKind Kind>() {
    launch_each("scale_to_half", stream, ScaleToHalf<Kind>{found, x.data(), words.data()}, x.size(),
                x.data(), words.data());
  });
}

namespace {

/// Returns the largest multiple of kSumTile that is at most half of the scratch memory.
std::size_t capacity_of(std::span<const float> scratch) {
  return scratch.size() / 2 / kSumTile * kSumTile;
}

}  // namespace

TileSums::TileSums(const char* name, cudaStream_t stream, std::span<float> scratch)
    : name_(name),
      stream_(stream),
      capacity_(capacity_of(scratch)),
      sums_(scratch.first(capacity_)),
      folded_(scratch.subspan(capacity_)) {}

float* TileSums::next(std::size_t tiles) {
  if (used_ + tiles > capacity_) fold();
  float* const place = sums_.data() + used_;
  used_ += tiles;
  return place;
}

void TileSums::fold() {
  launch_tiles(name_, stream_, ElementTerms{sums_.data()}, true, used_,
               folded_.data() + folded_used_);
  folded_used_ += tiles_of(used_);
  used_ = 0;
}

void TileSums::finish(Finish finish, float* out) {
  std::span<float> terms = sums_.first(used_);
  std::span<float> room = folded_;
  if (folded_used_ > 0) {
    fold();
    terms = folded_.first(folded_used_);
    room = folded_.subspan(folded_used_);
  }
  while (terms.size() > kSumTile) {
    launch_tiles(name_, stream_, ElementTerms{terms.data()}, are_aligned(terms.data()),
                 terms.size(), room.data());
    terms = room.first(tiles_of(terms.size()));
    room = room.subspan(terms.size());
  }
  launch_tiles(name_, stream_, ElementTerms{terms.data()}, are_aligned(terms.data()), terms.size(),
               out, finish);
}

void sum(cudaStream_t stream, std::span<const float> x, std::span<float> total,
         std::span<float> workspace) {
  require_elements({"sum", "total"}, total.size(), 1);
  require_workspace("sum", workspace);
  const auto terms_from = [x](std::size_t begin) { return ElementTerms{x.data() + begin}; };
  sum_of_terms("sum", stream, terms_from, are_aligned(x.data()), x.size(), {}, total.data(),
               workspace);
}

void squared_distance(cudaStream_t stream, std::span<const float> x, std::span<const float> y,
                      std::span<float> total, std::span<float> workspace) {
  require_elements({"squared_distance", "y"}, y.size(), x.size());
  require_elements({"squared_distance", "total"}, total.size(), 1);
  require_workspace("squared_distance", workspace);
  enqueue_squared_distance("squared_distance", stream, x, y, {}, total.data(), workspace);
}

}  // namespace weir::cuda
