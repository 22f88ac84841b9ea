#pragma once

// How the ranks of a wide run share its work, what each has, and what it sends.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"
#include "trainer/model/sparse_operations.hpp"
#include "trainer/ranks/communicator.hpp"
#include "trainer/ranks/shards.hpp"
#include "trainer/sparse/sparse_source.hpp"

namespace weir {

/// Buckets: gradients that are reduced over the ranks in one call (`--parallel data`).

/// 25 MiB, as PyTorch's DistributedDataParallel (`bucket_cap_mb`).
inline constexpr Bytes kDefaultBucket = mib(25);

/// Returns the most bytes of a bucket: MXNET_KVSTORE_REDUCE_BUCKET_SIZE, or the default. Throws
/// UsageError as parse_some_bytes does. (MXNet's own list of variables,
/// and its sources at its last commit, do not have this name: the meaning is ours.)
[[nodiscard]] Setting<Bytes> bucket_setting(const Environment& environment);

/// Groups gradients, in the order in which the backward pass makes them (last layer first), into
/// buckets of at most `most` bytes; a larger gradient is a bucket alone. `sizes` are in bytes, in
/// that order. Returns the number of gradients in each bucket; none is empty. Pure.
[[nodiscard]] std::vector<std::size_t> make_buckets(std::span<const Bytes> sizes, Bytes most);

/// Reduces each bucket once its last gradient is submitted, on kRanksStream: beside the rest of the
/// backward pass, since only what reads these gradients waits for it. One thread at a time.
class BucketedReduce {
 public:
  /// `buckets` as make_buckets returns it. Both references must outlive the operations.
  BucketedReduce(Scheduler& scheduler, Communicator& ranks, std::vector<std::size_t> buckets)
      : scheduler_(scheduler), ranks_(ranks), buckets_(std::move(buckets)) {}

  /// Call it for each gradient of a step, in the order of the sizes given to make_buckets, after
  /// the operation that makes it was submitted. Operations submitted after its bucket's last one
  /// read the sums over the ranks. Throws as Scheduler::submit does; then use it no more.
  void add(const Tensor& gradient);

 private:
  Scheduler& scheduler_;
  Communicator& ranks_;
  const std::vector<std::size_t> buckets_;
  std::size_t current_ = 0;       ///< index into buckets_
  std::vector<Tensor> gathered_;  ///< of the current bucket
};

/// Submits one reduction of these tensors, each in place. A caller with many tensors needs no
/// larger closure: see Kernel::kCapacity.
void submit_all_reduce(Scheduler& scheduler, Communicator& ranks, std::span<const Tensor> tensors);

enum class Parallel : std::uint8_t {
  /// Each rank has all weights and works on some rows of each batch. The gradients are summed up
  /// over the ranks, but that of the first layer: its factors are (see WideExchange::all_rows).
  kData,
  /// Each rank works on all rows. It has the first layer's weights of some inputs and the last
  /// layer's of some outputs; the middle is computed on each rank alike.
  kModel,
};

[[nodiscard]] constexpr auto names_of(Parallel /*of*/) noexcept {
  return name_table("data", "model");
}

/// This process among the ranks.
struct WideRanks {
  Communicator* ranks = nullptr;  ///< null: it trains alone
  Parallel parallel = Parallel::kData;
  Bytes bucket = kDefaultBucket;

  [[nodiscard]] bool share(Parallel way) const noexcept {
    return ranks != nullptr && parallel == way;
  }
  /// Returns what this rank has of `total` inputs or outputs.
  [[nodiscard]] Shard part_of(std::uint64_t total) const noexcept;
};

/// What decides the bytes of a step.
struct WideSplit {
  std::vector<std::size_t> widths;
  SparseLoss loss = SparseLoss::kSoftmax;
  std::uint64_t rows = 0;  ///< of a batch that is not cut short
  Parallel parallel = Parallel::kData;
  Bytes bucket{};
  int rank = 0;
  int ranks = 1;
};

/// Returns the bytes of what kData reduces, in the order of the backward pass: for each layer from
/// the last one on its bias and its weights, but for the first layer's weights the gradient at the
/// layer's outputs, of all `rows`.
[[nodiscard]] std::vector<Bytes> reduced_sizes(const std::vector<std::size_t>& widths,
                                               std::uint64_t rows);

/// Returns the bytes that the rank sends in a step with a batch of `rows` rows.
[[nodiscard]] std::uint64_t step_bytes(const WideSplit& split, std::uint64_t rows);
/// Returns the formula with its numbers, for a whole batch, in one line.
[[nodiscard]] std::string describe_step(const WideSplit& split);

/// Each batch of `source` with the inputs and the labels in these ranges alone, counted from the
/// ranges' first.
[[nodiscard]] SparseSource part_of_columns(SparseSource source, Shard inputs, Shard outputs);

/// What the ranks of a wide network exchange in a step, as operations on a scheduler: every method
/// submits and returns; nothing here waits. Each rank must call the same methods in the same order,
/// with tensors of the same sizes. One thread at a time.
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
