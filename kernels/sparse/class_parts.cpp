#include "kernels/sparse/class_parts.hpp"

#include <string>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/sparse/class_parts_row.hpp"
#include "kernels/sparse/count_hits.hpp"
#include "kernels/sparse/softmax_loss.hpp"

namespace weir {

void require_parts(const char* function, std::span<const float> parts, std::size_t floats) {
  if (floats != 0 && !parts.empty() && parts.size() % floats == 0) return;
  throw UsageError(std::string(function) + ": parts has " + std::to_string(parts.size()) +
                   " elements, expected one or more times " + std::to_string(floats));
}

void merge_softmax_statistics(std::span<const float> parts, std::span<float> statistics) {
  require_parts("merge_softmax_statistics", parts, statistics.size());
  require_matrix({"merge_softmax_statistics", "statistics"}, statistics.size(),
                 statistics.size() / kSoftmaxStatistics, kSoftmaxStatistics);
  const std::size_t stride = statistics.size();
  for (std::size_t at = 0; at < stride; at += kSoftmaxStatistics) {
    merge_softmax_row(parts.data() + at, parts.size() / stride, stride, statistics.data() + at);
  }
}

void merge_hits(std::span<const float> parts, std::size_t rows, std::span<float> hits) {
  const std::size_t stride = rows * kTopLogit;
  require_parts("merge_hits", parts, stride);
  require_elements({"merge_hits", "hits"}, hits.size(), 1);
  float count = 0;
  for (std::size_t at = 0; at < stride; at += kTopLogit) {
    count += merge_hit(parts.data() + at, parts.size() / stride, stride);
  }
  hits[0] = count;
}

}  // namespace weir
