#include "trainer/ranks/shards.hpp"

#include <numeric>

namespace weir {
namespace {

std::string sends(int rank, int ranks) {
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " sends in a step: ";
}

std::string result(std::uint64_t bytes) { return " = " + std::to_string(bytes) + " bytes"; }

}  // namespace

std::uint64_t model_step_bytes(const ModelSplit& split, int rank, bool softmax) noexcept {
  const std::uint64_t loss = softmax ? all_gather_bytes(split.rows * 4, split.ranks)
                                     : all_reduce_bytes(1, rank, split.ranks);
  return all_reduce_bytes(split.rows * split.first, rank, split.ranks) +
         all_gather_bytes(split.rows * 2, split.ranks) + loss +
         all_reduce_bytes(split.rows * split.last, rank, split.ranks);
}

std::string describe_model_step(const ModelSplit& split, int rank, bool softmax) {
  const std::string rows = std::to_string(split.rows);
  const std::string loss = softmax ? "all_gather " + rows + " x 4" : "all_reduce 1";
  return sends(rank, split.ranks) + "all_reduce " + rows + " x " + std::to_string(split.first) +
         " + all_gather " + rows + " x 2 + " + loss + " + all_reduce " + rows + " x " +
         std::to_string(split.last) + result(model_step_bytes(split, rank, softmax));
}

std::uint64_t data_step_bytes(const DataSplit& split, int rank) noexcept {
  std::uint64_t bytes = all_reduce_bytes(2, rank, split.ranks);
  for (const std::uint64_t floats : split.buckets) {
    bytes += all_reduce_bytes(floats, rank, split.ranks);
  }
  return bytes;
}

std::string describe_data_step(const DataSplit& split, int rank) {
  const std::uint64_t floats =
      std::accumulate(split.buckets.begin(), split.buckets.end(), std::uint64_t{0});
  return sends(rank, split.ranks) + "all_reduce " + std::to_string(floats) + " in " +
         std::to_string(split.buckets.size()) +
         (split.buckets.size() == 1 ? " bucket" : " buckets") + " + all_reduce 2" +
         result(data_step_bytes(split, rank));
}

}  // namespace weir
