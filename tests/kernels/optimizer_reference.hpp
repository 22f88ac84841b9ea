#pragma once

// Weights with their moments and a copy, for the tests of kernels/optimizer.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/optimizer/update.hpp"
#include "tests/kernels/sparse_reference.hpp"

namespace weir::reference {

inline constexpr std::array<Optimizer, 4> kOptimizers{Optimizer::kSgd, Optimizer::kMomentum,
                                                      Optimizer::kAdam, Optimizer::kAdamax};

[[nodiscard]] inline std::string name_of(Optimizer optimizer) {
  return std::array{"sgd", "momentum", "adam", "adamax"}.at(static_cast<std::size_t>(optimizer));
}

/// As many steps in as `steps` says, with the default betas.
[[nodiscard]] inline StepState state_after(int steps, float loss_scale = 1) {
  StepState state;
  state.loss_scale = loss_scale;
  for (int i = 0; i < steps; ++i) state = begun(state, 0.9, 0.999);
  return state;
}
[[nodiscard]] inline std::vector<float> words_of(const StepState& state) {
  std::vector<float> words(kStepStateWords);
  store_step_state(state, words);
  return words;
}

[[nodiscard]] inline std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

/// Weights in the middle of a training: no moment is zero, and u and v are positive.
struct TrainedWeights {
  TrainedWeights(Optimizer which, std::size_t count, std::uint64_t seed, bool with_copy = false)
      : w(random_numbers(count, seed)), copy(with_copy ? count : 0, 0x1234) {
    if (moments_of(which) > 0) first = random_numbers(count, seed + 1);
    if (moments_of(which) > 1) second = random_numbers(count, seed + 2);
    for (float& value : second) value = value * value + 0.01F;
  }

  [[nodiscard]] Weights view(HalfKind kind = HalfKind::kBf16) {
    return {w, first, second, {copy, kind}};
  }
  friend bool operator==(const TrainedWeights& a, const TrainedWeights& b) {
    return bits_of(a.w) == bits_of(b.w) && bits_of(a.first) == bits_of(b.first) &&
           bits_of(a.second) == bits_of(b.second) && a.copy == b.copy;
  }

  std::vector<float> w;
  std::vector<float> first{};
  std::vector<float> second{};
  std::vector<std::uint16_t> copy;
};

/// A batch's X by columns, and dy.
struct LayerBatch {
  LayerBatch(Sparsity sparsity, std::size_t n, std::uint32_t seed)
      : shape{.m = sparsity.rows, .k = sparsity.columns, .n = n},
        x(by_columns(random_sparse(sparsity, seed))),
        dy(random_numbers(sparsity.rows * n, seed)) {}

  DenseShape shape;
  SparseColumns x;
  std::vector<float> dy;
};

/// X's sparsity, and the width of the output.
struct LayerSize {
  Sparsity x;
  std::size_t n = 0;
};
/// One element; every row touched; none, also because there are no rows; no output; few entries,
/// many and long columns; widths with and without whole fours, beyond a piece of the CPU's and a
/// block of a device; more rows than a device's block finds at once.
inline constexpr std::array<LayerSize, 10> kLayerSizes{{{{1, 1, 1000}, 1},
                                                        {{5, 6, 1000}, 3},
                                                        {{4, 300, 0}, 8},
                                                        {{0, 3, 0}, 4},
                                                        {{3, 4, 500}, 0},
                                                        {{7, 700, 20}, 4},
                                                        {{33, 40, 300}, 65},
                                                        {{6, 9, 250}, 1024},
                                                        {{3, 7, 300}, 1027},
                                                        {{2, 5, 300}, 9001}}};

}  // namespace weir::reference
