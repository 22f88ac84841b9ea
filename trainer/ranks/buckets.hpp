#pragma once

/// @file
/// Buckets: gradients that are reduced over the ranks in one call (`--parallel data`).

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/setting.hpp"
#include "scheduler/scheduler.hpp"
#include "trainer/ranks/communicator.hpp"

namespace weir {

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

}  // namespace weir
