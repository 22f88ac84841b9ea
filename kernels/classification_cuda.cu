#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "allocator/base/error.hpp"
#include "kernels/classification_cuda.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sums/logits_cuda.hpp"
#include "kernels/sums/row_sums_cuda.hpp"

namespace weir::cuda {
namespace {

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
  return classes % 4 == 0 && is_aligned(z);
}

void require_shape(std::string_view function, LogitShape shape, std::span<const float> z,
                   std::span<const float> labels) {
  if (shape.rows == 0 || shape.classes == 0) {
    throw UsageError(std::string(function) + ": needs at least one row and one class");
  }
  if (shape.classes > kMostClasses) {
    throw UsageError(std::string(function) + ": " + std::to_string(shape.classes) +
                     " classes, at most " + std::to_string(kMostClasses));
  }
  require_matrix({function, "z"}, z.size(), shape.rows, shape.classes);
  require_elements({function, "labels"}, labels.size(), shape.rows);
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
