#pragma once

/// @file
/// Copies tensors between the devices of two schedulers, such as the cpu and a GPU. A copy is two
/// operations: one on the device of the original, which writes staging memory of the host, and one
/// on the other device, which reads it. Both return at once and run late, in order; the second
/// waits for the first on its device.
///
/// Every wait ends. A device waits for a signal only if the operation that gives it is enqueued.
/// So in the order in which operations were enqueued, on both devices together, each waits for
/// earlier ones alone, and the first that is not done can always run. An operation that fails or is
/// skipped gives its signal too. No frontend waits here, and the waits of the schedulers are for
/// submitted work: the same holds for them.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/condition.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"

namespace weir {

/// Copies in one direction that both devices have ended, without those that failed.
struct LinkFigures {
  std::uint64_t copies = 0;         ///< how many
  Bytes bytes{};                    ///< in all
  std::chrono::nanoseconds time{};  ///< that the devices copied: waits for each other are left out
};

/// Thread-safe. While a copy waits for the other device, the stream kCompute2 of its own does
/// nothing else: leave that stream to the link.
class DeviceLink {
 public:
  /// Both must outlive it, and be of different devices or of two devices of one kind.
  DeviceLink(Scheduler& first, Scheduler& second);
  /// Waits until the copies are done.
  ~DeviceLink();
  DeviceLink(const DeviceLink&) = delete;
  DeviceLink& operator=(const DeviceLink&) = delete;

  /// Returns a new tensor on the device of `to`, one of the two, with what `tensor` of the other
  /// one holds now, in its shape and dtype. Each half is charged to this thread's open batch of its
  /// scheduler, if any. Throws UsageError if `to` or the tensor is of another scheduler, and
  /// OutOfMemory or Cancelled as Scheduler::submit does, and OutOfMemory if the host has no staging
  /// memory left.
  ///
  /// If what it copies was lost to an error, so is the copy: waiting for it, or for all of `to`,
  /// throws that error. On a GPU operations that are enqueued by then still run, on NaN, and on -1
  /// where elements are integers.
  [[nodiscard]] Tensor copy_to(Scheduler& to, const Tensor& tensor, std::string_view label = "copy",
                               CallSite where = CallSite::here());

  /// Returns what was copied to this one of the two so far.
  [[nodiscard]] LinkFigures copied_to(const Scheduler& to) const;
  /// Returns the staging memory. It is reused, and kept until the end.
  [[nodiscard]] Bytes staging() const;

 private:
  struct Transfer;
  class User;
  class Source;
  class Target;

  /// Returns the smallest with room for so many bytes that is not in use, or null.
  [[nodiscard]] Transfer* find_idle(Bytes bytes) WEIR_REQUIRES(mutex_);
  /// Returns such a one, or a new one without memory, as in use.
  [[nodiscard]] Transfer& take(Bytes bytes);
  /// Returns one with room for so many bytes, with its first user.
  [[nodiscard]] User begin(Bytes bytes, bool to_second);
  /// Ends a use; after the last one the transfer is counted and free.
  void drop(Transfer& transfer) noexcept;

  Scheduler& first_;
  Scheduler& second_;
  Upstream& host_;

  mutable Mutex mutex_{LockRank::kLeaf};
  Condition idle_;  ///< a transfer has no user any more
  std::vector<std::unique_ptr<Transfer>> transfers_ WEIR_GUARDED_BY(mutex_);
  LinkFigures to_first_ WEIR_GUARDED_BY(mutex_);
  LinkFigures to_second_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir
