#include "trainer/ranks/shards.hpp"

#include "trainer/ranks/traffic.hpp"

namespace weir {

std::uint64_t model_step_bytes(const ModelSplit& split, int rank, bool softmax) noexcept {
  const std::uint64_t loss = softmax ? all_gather_bytes(split.rows * 2, split.ranks)
                                     : all_reduce_bytes(split.rows, rank, split.ranks);
  return all_reduce_bytes(split.rows * split.first, rank, split.ranks) + loss +
         all_reduce_bytes(split.rows * split.last, rank, split.ranks);
}

std::string describe_model_step(const ModelSplit& split, int rank, bool softmax) {
  const std::string rows = std::to_string(split.rows);
  const std::string loss = softmax ? "all_gather " + rows + " x 2" : "all_reduce " + rows;
  return "rank " + std::to_string(rank) + " of " + std::to_string(split.ranks) +
         " sends in a step: all_reduce " + rows + " x " + std::to_string(split.first) + " + " +
         loss + " + all_reduce " + rows + " x " + std::to_string(split.last) + " = " +
         std::to_string(model_step_bytes(split, rank, softmax)) + " bytes";
}

}  // namespace weir
