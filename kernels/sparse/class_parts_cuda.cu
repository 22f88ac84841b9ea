#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/grid_cuda.hpp"
#include "kernels/parts/launch_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sparse/class_parts_cuda.hpp"
#include "kernels/sparse/class_parts_row.hpp"
#include "kernels/sparse/count_hits.hpp"
#include "kernels/sparse/row_tiles_cuda.hpp"
#include "kernels/sparse/softmax_loss.hpp"
#include "kernels/sums/row_sums_cuda.hpp"

namespace weir::cuda {
namespace {

/// One thread a row: there are few rows and parts.
__global__ void merge_statistics_kernel(const float* data, std::size_t parts, std::size_t floats,
                                        float* statistics) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < floats / kSoftmaxStatistics; i += stride) {
    const std::size_t at = i * kSoftmaxStatistics;
    merge_softmax_row(data + at, parts, floats, statistics + at);
  }
}

/// terms[i] = 1 if row i is a hit, otherwise 0.
__global__ void merge_hits_kernel(const float* tops, std::size_t parts, std::size_t floats,
                                  std::size_t rows, float* terms) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < rows;
       i += stride) {
    terms[i] = merge_hit(tops + i * kTopLogit, parts, floats);
  }
}

}  // namespace

void merge_softmax_statistics(cudaStream_t stream, std::span<const float> parts,
                              std::span<float> statistics) {
  constexpr const char* kName = "merge_softmax_statistics";
  const std::size_t floats = statistics.size();
  require_parts(kName, parts, floats);
  const std::size_t rows = floats / kSoftmaxStatistics;
  require_matrix({kName, "statistics"}, floats, rows, kSoftmaxStatistics);
  launch(kName, merge_statistics_kernel, grid_for(rows), stream, parts.data(),
         parts.size() / floats, floats, statistics.data());
}

void merge_hits(cudaStream_t stream, std::span<const float> parts, std::size_t rows,
                std::span<float> hits, std::span<float> workspace) {
  constexpr const char* kName = "merge_hits";
  const std::size_t floats = rows * kTopLogit;
  require_parts(kName, parts, floats);
  require_elements({kName, "hits"}, hits.size(), 1);
  require_workspace(kName, workspace);
  const auto enqueue_terms = [&](std::size_t first, std::size_t count, float* terms) {
    launch(kName, merge_hits_kernel, grid_for(count), stream, parts.data() + first * kTopLogit,
           parts.size() / floats, floats, count, terms);
  };
  sum_of_rows<kRowTermsAtOnce>(kName, stream, rows, enqueue_terms, {}, hits.data(), workspace);
}

}  // namespace weir::cuda
