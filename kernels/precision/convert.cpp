#include "kernels/precision/convert.hpp"

#include <cstddef>

#include "kernels/parts/check.hpp"

namespace weir {
namespace {

template <HalfKind Kind>
void round_each(std::span<const float> x, std::uint16_t* words) {
  for (std::size_t i = 0; i < x.size(); ++i) words[i] = half_of_float<Kind>(x[i]);
}

template <HalfKind Kind>
void widen_each(std::span<const std::uint16_t> words, float* x) {
  for (std::size_t i = 0; i < words.size(); ++i) x[i] = float_of_half<Kind>(words[i]);
}

}  // namespace

void to_half(std::span<const float> x, std::span<std::uint16_t> words, HalfKind kind) {
  require_elements({"to_half", "words"}, words.size(), x.size());
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? round_each<HalfKind::kBf16> : round_each<HalfKind::kFp16>)(x, words.data());
}

void from_half(std::span<const std::uint16_t> words, std::span<float> x, HalfKind kind) {
  require_elements({"from_half", "x"}, x.size(), words.size());
  const bool bf16 = kind == HalfKind::kBf16;
  (bf16 ? widen_each<HalfKind::kBf16> : widen_each<HalfKind::kFp16>)(words, x.data());
}

}  // namespace weir
