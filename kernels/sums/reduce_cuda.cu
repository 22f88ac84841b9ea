#include <cstddef>

#include "kernels/parts/check.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sums/reduce_cuda.hpp"
#include "kernels/sums/squares_cuda.hpp"
#include "kernels/sums/sum_tiles_cuda.hpp"

namespace weir::cuda {

void sum(cudaStream_t stream, std::span<const float> x, std::span<float> total,
         std::span<float> workspace) {
  require_elements({"sum", "total"}, total.size(), 1);
  require_workspace("sum", workspace);
  const auto terms_from = [x](std::size_t begin) { return ElementTerms{x.data() + begin}; };
  sum_of_terms("sum", stream, terms_from, is_aligned(x.data()), x.size(), {}, total.data(),
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
