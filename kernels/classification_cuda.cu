#include <cstddef>
#include <string>
#include <string_view>

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

/// A row's term in a sum over the rows.
struct RowLoss {
  __device__ static float of(const LogitRow& row) {
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
  __device__ static float of(const LogitRow& row) { return row.correct() ? 1.0F : 0.0F; }
};

/// terms[i] = the term of row i, one warp for each row.
template <typename Row>
__global__ void row_terms_kernel(const float* z, const float* labels, std::size_t rows,
                                 std::size_t classes, float* terms) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < rows; i += stride) {
    const float term = Row::of(LogitRow{z + i * classes, classes, labels[i]});
    if (threadIdx.x % kWarpLanes == 0) terms[i] = term;
  }
}

/// One warp for each row. dz may be z: every lane finishes the row's sum before one writes, and
/// then each lane reads and writes the same elements.
__global__ void gradient_kernel(const float* z, const float* labels, std::size_t rows,
                                std::size_t classes, float* dz, float divisor) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlockWarps;
  for (std::size_t i =
           static_cast<std::size_t>(blockIdx.x) * kBlockWarps + threadIdx.x / kWarpLanes;
       i < rows; i += stride) {
    const LogitRow row{z + i * classes, classes, labels[i]};
    const float largest = row.largest();
    const float total = row.total(largest);
    const bool labelled = row.labelled();
    const std::uint64_t label = labelled ? static_cast<std::uint64_t>(row.label) : 0;
    float* const out = dz + i * classes;
    for (std::size_t j = threadIdx.x % kWarpLanes; j < classes; j += kWarpLanes) {
      const float share = exp_of_negative(rounded_add(row.z[j], -largest)) / total;
      const float slope = rounded_add(share, j == label ? -1.0F : -0.0F) / divisor;
      out[j] = labelled ? slope : float_of_bits(kNanBits);
    }
  }
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
template <typename Row>
void sum_rows(const char* name, cudaStream_t stream, LogitShape shape, const float* z,
              const float* labels, Finish finish, float* out, std::span<float> workspace) {
  const auto enqueue_terms = [=](std::size_t begin, std::size_t rows, float* terms) {
    launch(name, row_terms_kernel<Row>, grid_for(rows, kBlockWarps), stream,
           z + begin * shape.classes, labels + begin, rows, shape.classes, terms);
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
  launch("softmax_cross_entropy_gradient", gradient_kernel, grid_for(shape.rows, kBlockWarps),
         stream, z.data(), labels.data(), shape.rows, shape.classes, dz.data(),
         static_cast<float>(shape.rows));
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
