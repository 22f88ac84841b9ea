#pragma once

/// @file
/// Which rank has what, and the bytes that a step exchanges. Pure.

#include <cstdint>
#include <string>
#include <vector>

namespace weir {

/// A range of rows or columns.
struct Shard {
  std::uint64_t first = 0;  ///< the first one
  std::uint64_t count = 0;  ///< how many
  /// Both must be equal.
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Returns the range of `rank`: the ranges follow each other, cover all of `total`, and differ by
/// at most one. `ranks` is at least 1.
[[nodiscard]] constexpr Shard shard_of(std::uint64_t total, int rank, int ranks) noexcept {
  const auto r = static_cast<std::uint64_t>(rank);
  const auto n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t least = total / n;
  const std::uint64_t more = total % n;  // the first ranks have one more
  return {r * least + (r < more ? r : more), least + (r < more ? 1 : 0)};
}

/// A network with two hidden layers, split by `--parallel model`: a rank has some rows of the first
/// layer, that is some inputs, and some columns of the last one, that is some outputs. The middle
/// is computed on each rank.
struct ModelSplit {
  std::uint64_t inputs = 0;   ///< of the network
  std::uint64_t first = 0;    ///< width of the first hidden layer
  std::uint64_t last = 0;     ///< width of the last hidden layer
  std::uint64_t outputs = 0;  ///< of the network
  std::uint64_t rows = 0;     ///< of a batch; every rank works on all of them
  int ranks = 1;              ///< how many share the network
};

/// Returns the bytes that `rank` sends in one step of training:
/// @verbatim
///   forward    all_reduce of the first layer's partial products, rows x first
///   hits       all_gather of each row's largest logit, and whether it is a label, rows x 2
///   loss       all_gather of each row's maximum, sum of exponentials, sum of its labels' logits
///   and
///              number of labels, rows x 4
///   backward   all_reduce of the partial gradients at the last layer's inputs, rows x last
/// @endverbatim
/// The weights' gradients are each rank's own and do not travel. With a logistic output (`softmax`
/// is false) the loss is a sum over the classes, and so over the ranks: one float is reduced.
[[nodiscard]] std::uint64_t model_step_bytes(const ModelSplit& split, int rank,
                                             bool softmax = true) noexcept;

/// Returns the formula with these numbers and its result, in one line, for people.
[[nodiscard]] std::string describe_model_step(const ModelSplit& split, int rank,
                                              bool softmax = true);

/// What `--parallel data` reduces in a step.
struct DataSplit {
  std::vector<std::uint64_t> buckets{};  ///< floats of each
  int ranks = 1;                         ///< how many share the batch
};

/// Returns the bytes that `rank` sends in one step of training: an all_reduce for each bucket, and
/// one of the loss and the hits.
[[nodiscard]] std::uint64_t data_step_bytes(const DataSplit& split, int rank) noexcept;
/// As describe_model_step.
[[nodiscard]] std::string describe_data_step(const DataSplit& split, int rank);

/// Each rank adds up one share: it sends the other shares to their ranks, and its own sum to all.
/// With equal shares 2 (R − 1) / R of the data, the least possible: Patarasuk and Yuan, Bandwidth
/// optimal all-reduce algorithms for clusters of workstations (2009).
[[nodiscard]] constexpr std::uint64_t all_reduce_bytes(std::uint64_t floats, int rank,
                                                       int ranks) noexcept {
  const std::uint64_t share = shard_of(floats, rank, ranks).count;
  return sizeof(float) * (floats - share + static_cast<std::uint64_t>(ranks - 1) * share);
}

/// Each rank sends its floats to every other.
[[nodiscard]] constexpr std::uint64_t all_gather_bytes(std::uint64_t floats, int ranks) noexcept {
  return sizeof(float) * floats * static_cast<std::uint64_t>(ranks - 1);
}

}  // namespace weir
