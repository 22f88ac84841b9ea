#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/loss.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sums/sums_cuda.hpp"

namespace weir::cuda {
namespace {

struct L2Gradient {
  static constexpr std::size_t kGroup = 4;
  const float* p;
  const float* t;
  float* dp;
  float m;

  __device__ float operator()(float prediction, float target) const {
    return rounded_add(prediction, -target) / m;
  }
  __device__ void one(std::size_t i) const { dp[i] = (*this)(p[i], t[i]); }
  __device__ void group(std::size_t i) const {
    store_four(dp + i, each_of_four(*this, load_four(p + i), load_four(t + i)));
  }
};

// One row of logits. A few classes are held in the registers of one
// thread, some hundred in those of a warp; more are read again for each pass. All threads of a row
// call each function and get the same result, whose bits do not depend on the kind of row.

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

/// Returns the best of all lanes of a warp to each lane.
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

/// As large as fits, since each round takes two dependent launches.
constexpr std::size_t kRowsAtOnce = kWorkspaceElements / 2;

constexpr std::uint32_t kNanBits = 0x7FC00000U;

/// The most classes that are held in registers. Exponentials need registers themselves: on an H100
/// the loss of 65536 rows of 1024 took 280 us held and 176 us read twice, the gradient 595 and 350.
constexpr std::size_t kMostHeld = kSumTile;
constexpr std::size_t kMostHeldBesideExponentials = 256;

/// A row's term in a sum over the rows.
struct RowLoss {
  static constexpr std::size_t kHeld = kMostHeldBesideExponentials;
  template <typename Row>
  __device__ static float of(Row& row) {
    const float largest = row.largest();
    const float total = row.total(largest);
    if (!row.labelled()) return float_of_bits(kNanBits);
    if (total != total) return total;
    // The largest logit's own term is 1, so the total is a normal number.
    const float own = row.z[static_cast<std::uint64_t>(row.label)];
    return rounded_add(log_of_unit(total), rounded_add(largest, -own));
  }
};
struct RowCorrect {
  static constexpr std::size_t kHeld = kMostHeld;
  template <typename Row>
  __device__ static float of(const Row& row) {
    return row.correct() ? 1.0F : 0.0F;
  }
};

struct Logits {
  const float* z;
  const float* labels;
  std::size_t rows;
  std::size_t classes;
  bool aligned;  ///< each row may be read, and written where it is, sixteen bytes at a time
};

/// Calls `work(i, row)` for the rows of this thread.
template <typename Row, typename Work>
__device__ void each_row(const Logits& logits, const Work& work) {
  constexpr std::size_t kRows = kBlockThreads / Row::kThreads;  // of a block
  const std::size_t stride = gridDim.x * kRows;
  for (std::size_t i = blockIdx.x * kRows + threadIdx.x / Row::kThreads; i < logits.rows;
       i += stride) {
    Row row({logits.z + i * logits.classes, logits.classes, logits.labels[i]}, logits.aligned);
    work(i, row);
  }
}

/// terms[i] = the term of row i.
template <typename Row, typename Term>
__global__ void row_terms_kernel(Logits logits, float* terms) {
  each_row<Row>(logits, [&](std::size_t i, Row& row) {
    const float term = Term::of(row);
    if (threadIdx.x % Row::kThreads == 0) terms[i] = term;
  });
}

/// dz may be z: every thread of a row finishes its sum before one writes.
template <typename Row>
__global__ void gradient_kernel(Logits logits, float* dz, float divisor) {
  each_row<Row>(logits, [&](std::size_t i, Row& row) {
    const float largest = row.largest();
    const float total = row.total(largest);
    const bool labelled = row.labelled();
    const std::uint64_t label = labelled ? static_cast<std::uint64_t>(row.label) : 0;
    row.write(dz + i * logits.classes, logits.aligned, largest,
              [&](std::size_t j, float exponential) {
                const float share = exponential / total;
                const float slope = rounded_add(share, j == label ? -1.0F : -0.0F) / divisor;
                return labelled ? slope : float_of_bits(kNanBits);
              });
  });
}

/// Calls `launch_for(type)` with the kind of row for so many classes. `held`: the most classes that
/// may be held in registers.
template <typename LaunchFor>
void for_kind_of_row(std::size_t classes, std::size_t held, const LaunchFor& launch_for) {
  if (classes > held) return launch_for(std::type_identity<LongRow>{});
  if (classes <= 8) return launch_for(std::type_identity<ThreadRow<8>>{});
  if (classes <= 16) return launch_for(std::type_identity<ThreadRow<16>>{});
  if (classes <= 32) return launch_for(std::type_identity<ThreadRow<32>>{});
  if (classes <= 256) return launch_for(std::type_identity<WarpRow<8>>{});
  launch_for(std::type_identity<WarpRow<kMostHeld / kWarpLanes>>{});
}

[[nodiscard]] bool rows_are_aligned(std::size_t classes, const float* z) {
  return classes % 4 == 0 && are_aligned(z);
}

void require_shape(const char* function, LogitShape shape, std::span<const float> z,
                   std::span<const float> labels) {
  require_at_most(function, "classes", shape.classes, kMostClasses);
  require_logits(function, shape, z, labels);
}

/// out[0] = the finished sum of the rows' terms.
template <typename Term>
void sum_rows(const char* name, cudaStream_t stream, LogitShape shape, const float* z,
              const float* labels, Finish finish, float* out, std::span<float> workspace) {
  const auto enqueue_terms = [=](std::size_t begin, std::size_t rows, float* terms) {
    const float* const first = z + begin * shape.classes;
    const Logits logits{first, labels + begin, rows, shape.classes,
                        rows_are_aligned(shape.classes, first)};
    for_kind_of_row(shape.classes, Term::kHeld, [&]<typename Row>(std::type_identity<Row>) {
      launch(name, row_terms_kernel<Row, Term>, grid_for(rows, kBlockThreads / Row::kThreads),
             stream, logits, terms);
    });
  };
  sum_of_rows<kRowsAtOnce>(name, stream, shape.rows, enqueue_terms, finish, out, workspace);
}

}  // namespace

void l2_loss(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
             std::span<float> loss, std::span<float> workspace) {
  const float m = require_targets("l2_loss", p, t);
  require_elements({"l2_loss", "loss"}, loss.size(), 1);
  require_workspace("l2_loss", workspace);
  enqueue_squared_distance("l2_loss", stream, p, t, {.divisor = m, .factor = 0.5F}, loss.data(),
                           workspace);
}

void l2_loss_gradient(cudaStream_t stream, std::span<const float> p, std::span<const float> t,
                      std::span<float> dp) {
  const float m = require_targets("l2_loss_gradient", p, t);
  require_elements({"l2_loss_gradient", "dp"}, dp.size(), p.size());
  launch_each("l2_loss_gradient", stream, L2Gradient{p.data(), t.data(), dp.data(), m}, p.size(),
              p.data(), t.data(), dp.data());
}

void softmax_cross_entropy(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                           std::span<const float> labels, std::span<float> loss,
                           std::span<float> workspace) {
  require_shape("softmax_cross_entropy", shape, z, labels);
  require_elements({"softmax_cross_entropy", "loss"}, loss.size(), 1);
  require_workspace("softmax_cross_entropy", workspace);
  sum_rows<RowLoss>("softmax_cross_entropy", stream, shape, z.data(), labels.data(),
                    {.divisor = static_cast<float>(shape.rows)}, loss.data(), workspace);
}

void softmax_cross_entropy_gradient(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                                    std::span<const float> labels, std::span<float> dz) {
  require_shape("softmax_cross_entropy_gradient", shape, z, labels);
  require_elements({"softmax_cross_entropy_gradient", "dz"}, dz.size(), z.size());
  const bool aligned =
      rows_are_aligned(shape.classes, z.data()) && rows_are_aligned(shape.classes, dz.data());
  const Logits logits{z.data(), labels.data(), shape.rows, shape.classes, aligned};
  const auto launch_for = [&]<typename Row>(std::type_identity<Row>) {
    launch("softmax_cross_entropy_gradient", gradient_kernel<Row>,
           grid_for(shape.rows, kBlockThreads / Row::kThreads), stream, logits, dz.data(),
           static_cast<float>(shape.rows));
  };
  for_kind_of_row(shape.classes, kMostHeldBesideExponentials, launch_for);
}

void count_correct(cudaStream_t stream, LogitShape shape, std::span<const float> z,
                   std::span<const float> labels, std::span<float> correct,
                   std::span<float> workspace) {
  require_shape("count_correct", shape, z, labels);
  require_elements({"count_correct", "correct"}, correct.size(), 1);
  require_workspace("count_correct", workspace);
  sum_rows<RowCorrect>("count_correct", stream, shape, z.data(), labels.data(), {}, correct.data(),
                       workspace);
}

}  // namespace weir::cuda
