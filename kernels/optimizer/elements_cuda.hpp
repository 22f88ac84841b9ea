#pragma once

/// @file
/// The weights and moments of an update in device memory, one or four at a time. For the sources of
/// this folder.

#include <cstddef>
#include <cstdint>

#include "kernels/optimizer/rules.hpp"
#include "kernels/parts/each_cuda.hpp"

namespace weir::cuda {

/// Weights as a kernel's argument.
struct Elements {
  float* w = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  std::uint16_t* copy = nullptr;
  HalfKind kind = HalfKind::kBf16;

  explicit Elements(const Weights& weights)
      : w(weights.w.data()),
        first(weights.first.data()),
        second(weights.second.data()),
        copy(weights.copy.words.empty() ? nullptr : weights.copy.words.data()),
        kind(weights.copy.kind) {}

  __device__ std::uint16_t half_of(float weight) const {
    return kind == HalfKind::kBf16 ? bf16_of_float(weight) : fp16_of_float(weight);
  }
};

/// The elements from one index on, as many as T has: float or float4. Loads all before it stores
/// one.
template <typename Rule, typename T>
struct Loaded;

template <typename Rule>
struct Loaded<Rule, float> {
  Element e;

  __device__ Loaded(const Elements& all, std::size_t i) {
    e.w = all.w[i];
    if constexpr (Rule::kMoments > 0) e.first = all.first[i];
    if constexpr (Rule::kMoments > 1) e.second = all.second[i];
  }
  __device__ void step(const Rule& rule, float g) { rule.step(e, g); }
  __device__ void store(const Elements& all, std::size_t i) const {
    all.w[i] = e.w;
    if constexpr (Rule::kMoments > 0) all.first[i] = e.first;
    if constexpr (Rule::kMoments > 1) all.second[i] = e.second;
    if (all.copy != nullptr) all.copy[i] = all.half_of(e.w);
  }
};

template <typename Rule>
struct Loaded<Rule, float4> {
  float4 w{};
  float4 first{};
  float4 second{};

  __device__ Loaded(const Elements& all, std::size_t i) : w(load_four(all.w + i)) {
    if constexpr (Rule::kMoments > 0) first = load_four(all.first + i);
    if constexpr (Rule::kMoments > 1) second = load_four(all.second + i);
  }
  __device__ void step(const Rule& rule, float4 g) {
    step_one(rule, w.x, first.x, second.x, g.x);
    step_one(rule, w.y, first.y, second.y, g.y);
    step_one(rule, w.z, first.z, second.z, g.z);
    step_one(rule, w.w, first.w, second.w, g.w);
  }
  __device__ void store(const Elements& all, std::size_t i) const {
    store_four(all.w + i, w);
    if constexpr (Rule::kMoments > 0) store_four(all.first + i, first);
    if constexpr (Rule::kMoments > 1) store_four(all.second + i, second);
    if (all.copy == nullptr) return;
    *reinterpret_cast<ushort4*>(all.copy + i) =
        ushort4{all.half_of(w.x), all.half_of(w.y), all.half_of(w.z), all.half_of(w.w)};
  }

 private:
  __device__ static void step_one(const Rule& rule, float& w, float& first, float& second,
                                  float g) {
    Element e{w, first, second};
    rule.step(e, g);
    w = e.w;
    first = e.first;
    second = e.second;
  }
};

/// Changes the elements from i on by their gradient, which `gradient` returns: it is called after
/// the loads have begun, so that its own overlap with them.
template <typename T, typename Rule, typename Gradient>
__device__ void update_at(const Rule& rule, const Elements& all, std::size_t i,
                          const Gradient& gradient) {
  Loaded<Rule, T> loaded(all, i);
  loaded.step(rule, gradient());
  loaded.store(all, i);
}

/// Makes the step's rule, once for a block and so in shared memory; the block must then wait for
/// all its threads. The last thread does it, so that the first can do something else meanwhile.
template <typename Rule>
__device__ void make_rule(const OptimizerOptions& options, const StepState& state, Rule& rule) {
  if (threadIdx.x == blockDim.x - 1) rule = Rule::of(options, state);
}

}  // namespace weir::cuda
