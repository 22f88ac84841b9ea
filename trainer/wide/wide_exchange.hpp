#pragma once

// What the ranks of a wide network exchange in a step, as operations on a scheduler: every method
// submits and returns; nothing here waits. Each rank must call the same methods in the same order,
// with tensors of the same sizes. One thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/sparse_operations.hpp"
#include "trainer/ranks/buckets.hpp"
#include "trainer/wide/wide_ranks.hpp"

namespace weir {

class WideExchange {
 public:
  /// `rows` are those of a whole batch. `operations` and the ranks must outlive what is submitted.
  WideExchange(Operations& operations, const WideRanks& ranks,
               const std::vector<std::size_t>& widths, std::uint64_t rows);

  [[nodiscard]] bool shares(Parallel way) const noexcept { return ranks_.share(way); }

  /// Replaces each tensor by its sum over the ranks.
  void add_up(std::span<const Tensor> tensors);

  /// Of Parallel::kData: call it for each tensor of reduced_sizes, in that order, once it is
  /// submitted. It is reduced with its bucket, beside the rest of the backward pass. Does nothing
  /// without such ranks.
  void reduce(const Tensor& gradient);
  /// Returns the gradient at the first layer's outputs [all rows × n] from that of this rank's
  /// rows, summed up over the ranks, that is put together. With the whole batch's inputs it makes
  /// the gradient of the first layer's weights, as one rank does: rows × n floats travel, in place
  /// of inputs × n, and the gradient is not stored.
  [[nodiscard]] Tensor all_rows(const Tensor& dy, const PackedTensor& batch);
  /// Sets the overflow flag of the step's state alike on all ranks: if a reduced gradient of
  /// weights is not finite. Looks at its first row, since an infinity in the layer's dy reaches
  /// each row.
  void flag_overflow(const Tensor& gradient, const Tensor& state);

  /// Of Parallel::kModel: as SparseOperations's, from logits of this rank's classes.
  [[nodiscard]] Tensor loss_and_gradient(SparseLoss kind, const Tensor& logits,
                                         const PackedTensor& batch);
  [[nodiscard]] Tensor hits(const Tensor& logits, const PackedTensor& batch);

 private:
  /// Returns every rank's `mine`, in the order of ranks.
  [[nodiscard]] Tensor gathered(const Tensor& mine);

  Operations& operations_;
  SparseOperations sparse_;
  const WideRanks ranks_;
  std::optional<BucketedReduce> buckets_;
};

}  // namespace weir
