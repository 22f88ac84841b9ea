#pragma once

/// @file
/// One row of logits, for classification_cuda.cu. A few classes are held in the registers of one
/// thread, some hundred in those of a warp; more are read again for each pass. All threads of a row
/// call each function and get the same result, whose bits do not depend on the kind of row.

#include <cstddef>
#include <cstdint>

#include "kernels/parts/each_cuda.hpp"
#include "kernels/parts/exponential.hpp"
#include "kernels/parts/warp_cuda.hpp"
#include "kernels/sums/warp_terms_cuda.hpp"

namespace weir::cuda {

/// The most classes: those of a row's sum.
inline constexpr std::size_t kMostClasses = kMostWarpTerms;

inline constexpr std::uint32_t kMinusInfinity = 0xFF800000U;

/// A row: its logits and its label as given.
struct LabelledRow {
  const float* z;
  std::size_t classes;
  float label;

  /// Whether the label is a class; false for NaN.
  __device__ bool labelled() const {
    if (!(label >= 0.0F && label < static_cast<float>(classes))) return false;
    return static_cast<float>(static_cast<std::uint64_t>(label)) == label;
  }
};

/// The first of the largest of some logits.
struct Best {
  float value = float_of_bits(kMinusInfinity);  // as every logit may be
  unsigned long long at;  ///< the number of classes for none: any logit comes before it
  int nans = 0;           ///< whether one of them is NaN

  __device__ void take(float other, unsigned long long there) {
    if (other > value || (other == value && there < at)) {
      value = other;
      at = there;
    }
  }
  __device__ bool is_label(const LabelledRow& row) const {
    return nans == 0 && row.labelled() && at == static_cast<std::uint64_t>(row.label);
  }
};

/// The same for every lane of a warp.
__device__ inline Best best_of_lanes(Best best) {
  for (unsigned half = kWarpLanes / 2; half > 0; half /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, best.value, static_cast<int>(half));
    const unsigned long long there = __shfl_xor_sync(kAllLanes, best.at, static_cast<int>(half));
    best.nans |= __shfl_xor_sync(kAllLanes, best.nans, static_cast<int>(half));
    best.take(other, there);
  }
  return best;
}

/// A row of up to kMost classes, held by one thread.
template <unsigned kMost>
struct ThreadRow : LabelledRow {
  static constexpr unsigned kThreads = 1;
  float held[kMost];  ///< the logits, then the exponentials

  /// `aligned`: the row may be read, and written, sixteen bytes at a time.
  __device__ ThreadRow(const LabelledRow& row, bool aligned) : LabelledRow(row) {
    for (unsigned j = 0; j < kMost; j += 4) {
      if (aligned && j < classes) {
        const float4 four = load_four(z + j);
        held[j] = four.x;
        held[j + 1] = four.y;
        held[j + 2] = four.z;
        held[j + 3] = four.w;
      } else {
        for (unsigned i = j; i < j + 4; ++i) {
          held[i] = i < classes ? z[i] : float_of_bits(kMinusInfinity);
        }
      }
    }
  }
  __device__ float largest() const {
    float best = float_of_bits(kMinusInfinity);
    for (const float value : held) best = value > best ? value : best;
    return best;
  }
  /// Returns the sum of exp(z[j] - largest), in reduce.hpp's order: each term is a lane's sum.
  /// The lanes from kMost on have none, and folding zeros changes no bit.
  __device__ float total(float largest) {
    float lanes[kMost];
    for (unsigned j = 0; j < kMost; ++j) {
      held[j] = exp_of_negative(rounded_add(held[j], -largest));  // 0 where there is no logit
      lanes[j] = held[j];
    }
    for (unsigned half = kMost / 2; half > 0; half /= 2) {
      for (unsigned l = 0; l < half; ++l) lanes[l] = rounded_add(lanes[l], lanes[l + half]);
    }
    return lanes[0];
  }
  /// out[j] = change(j, exp(z[j] - largest)), after `total`.
  template <typename Change>
  __device__ void write(float* out, bool aligned, float /*largest*/, const Change& change) {
    for (unsigned j = 0; j < kMost; ++j) held[j] = change(j, held[j]);
    for (unsigned j = 0; j < kMost; j += 4) {
      if (aligned && j < classes) {
        store_four(out + j, float4{held[j], held[j + 1], held[j + 2], held[j + 3]});
      } else {
        for (unsigned i = j; i < j + 4; ++i) {
          if (i < classes) out[i] = held[i];
        }
      }
    }
  }
  /// Whether the label is the first of the largest logits, and no logit is NaN.
  __device__ bool correct() const {
    Best best{.at = classes};
    for (unsigned j = 0; j < kMost; ++j) {
      if (held[j] != held[j]) best.nans = 1;
      if (j < classes) best.take(held[j], j);
    }
    return best.is_label(*this);
  }
};

/// A row of up to 32 kHeld classes, held by a warp: lane l has the logits l, l + 32, ...
template <unsigned kHeld>
struct WarpRow : LabelledRow {
  static constexpr unsigned kThreads = kWarpLanes;
  const unsigned lane = threadIdx.x % kWarpLanes;
  float held[kHeld];  ///< the logits, then the exponentials

  __device__ WarpRow(const LabelledRow& row, bool /*aligned*/) : LabelledRow(row) {
    for (unsigned k = 0; k < kHeld; ++k) {
      held[k] = place(k) < classes ? z[place(k)] : float_of_bits(kMinusInfinity);
    }
  }
  __device__ unsigned place(unsigned k) const { return lane + k * kWarpLanes; }
  __device__ float largest() const {
    float best = float_of_bits(kMinusInfinity);
    for (const float value : held) best = value > best ? value : best;
    return largest_of_lanes(best);
  }
  __device__ float total(float largest) {
    float sum = 0;
    for (unsigned k = 0; k < kHeld; ++k) {
      held[k] = exp_of_negative(rounded_add(held[k], -largest));  // 0 where there is no logit
      sum += held[k];
    }
    return fold_lanes_to_all(sum);
  }
  template <typename Change>
  __device__ void write(float* out, bool /*aligned*/, float /*largest*/, const Change& change) {
    for (unsigned k = 0; k < kHeld; ++k) {
      if (place(k) < classes) out[place(k)] = change(place(k), held[k]);
    }
  }
  __device__ bool correct() const {
    Best best{.at = classes};
    for (unsigned k = 0; k < kHeld; ++k) {
      if (held[k] != held[k]) best.nans = 1;
      if (place(k) < classes) best.take(held[k], place(k));
    }
    return best_of_lanes(best).is_label(*this);
  }
};

/// A row of any length, read by a warp once for each pass.
struct LongRow : LabelledRow {
  static constexpr unsigned kThreads = kWarpLanes;

  __device__ LongRow(const LabelledRow& row, bool /*aligned*/) : LabelledRow(row) {}

  __device__ float largest() const {
    float best = float_of_bits(kMinusInfinity);
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      best = z[j] > best ? z[j] : best;
    }
    return largest_of_lanes(best);
  }

  __device__ float total(float largest) const {
    const float* const logits = z;
    return sum_terms_of_warp(classes, [logits, largest](std::size_t j) {
      return exp_of_negative(rounded_add(logits[j], -largest));
    });
  }
  /// `out` may be z: each lane reads and writes the same elements.
  template <typename Change>
  __device__ void write(float* out, bool /*aligned*/, float largest, const Change& change) const {
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      out[j] = change(j, exp_of_negative(rounded_add(z[j], -largest)));
    }
  }
  __device__ bool correct() const {
    Best best{.at = classes};
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      if (z[j] != z[j]) best.nans = 1;
      best.take(z[j], j);
    }
    return best_of_lanes(best).is_label(*this);
  }
};

}  // namespace weir::cuda
