#pragma once

/// @file
/// The asynchronous scheduler: operations are submitted from any number of frontend threads, run
/// late on the device in the order that their tensors demand, and a frontend is held back only in
/// begin_batch, or in an allocation that does not fit.
///
/// Thread-safe, but no two threads may use one Tensor handle at once. A thread that serves the
/// device (inside a submitted closure) may not call anything here: UsageError.
/// docs/architecture.md follows one batch through these functions.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/batch.hpp"
#include "scheduler/dependencies.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/kernel.hpp"
#include "scheduler/operation.hpp"
#include "scheduler/tensor.hpp"
#include "scheduler/tensor_memory.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {

/// What a scheduler can be told. PolicyOptions has what users set of it.
struct SchedulerOptions {
  std::optional<Bytes> budget{};       ///< the pool's own when not given
  Policy policy = Policy::kThrottled;  ///< what holds a frontend back
  RunAhead run_ahead{};                ///< the soft limit of `throttled`
  /// The longest that an allocation of a younger open batch waits for an older open one.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
};

/// A list of tensors that is only looked at during a call: `{x, weights}`, or any span.
class TensorList {
 public:
  TensorList() = default;
  /// Of the handles between braces, for the call that they are written in.
  TensorList(std::initializer_list<Tensor> tensors) noexcept
      : tensors_(std::data(tensors), tensors.size()) {}
  /// Of `tensors`, which must outlive it.
  TensorList(std::span<const Tensor> tensors) noexcept : tensors_(tensors) {}
  /// Of `tensors`, which must outlive it.
  TensorList(const std::vector<Tensor>& tensors) noexcept : tensors_(tensors) {}
  /// The first.
  [[nodiscard]] auto begin() const noexcept { return tensors_.begin(); }
  /// Behind the last.
  [[nodiscard]] auto end() const noexcept { return tensors_.end(); }

 private:
  std::span<const Tensor> tensors_;
};

/// What an operation does to which tensors. A tensor that is updated in place stands in both.
struct Uses {
  TensorList reads{};                        ///< in the order of Inputs
  TensorList writes{};                       ///< in the order of Outputs
  StreamRole stream = StreamRole::kCompute;  ///< where it runs
};

/// Memory as the program sees it. free + allocated + awaiting == total, and
/// allocated + awaiting + cached == reserved.
struct MemoryInfo {
  Bytes total;      ///< the budget
  Bytes free;       ///< what can be handed out: total − allocated − awaiting
  Bytes requested;  ///< asked for by those who hold memory now, before rounding
  Bytes allocated;  ///< handed out, after rounding
  Bytes awaiting;   ///< freed, and the device not known to be done with it
  Bytes cached;     ///< free, and kept for the next request
  Bytes reserved;   ///< obtained from the device
};

/// Throws UsageError on a thread that serves a device; `call` is what it may not do.
void refuse_device_thread(std::string_view call);

/// Submits work to one device. The file's description says who may call it and when it waits.
class Scheduler {
 public:
  /// Sets the pool's limits from the options. UsageError for a budget that the device lacks, and
  /// for a pool that another scheduler has. `device` and `pool` must outlive it.
  Scheduler(Device& device, Pool& pool, const SchedulerOptions& options = {});
  /// Waits for everything submitted. Tensors that are still held lose their memory. Other threads
  /// may let go of handles meanwhile; whatever else they call must have returned, and every batch
  /// be closed.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// A tensor without memory yet; the first operation that writes it gets the memory.
  [[nodiscard]] Tensor empty(const Shape& shape, std::string_view label = {});

  /// Opens a batch, or joins the one that this thread has open. Held back here, if anywhere.
  /// Throws Cancelled when `options.stop` ends the wait.
  [[nodiscard]] Batch begin_batch(std::string_view kind, const BatchOptions& options = {},
                                  CallSite where = CallSite::here());

  /// Enqueues `kernel` behind everything it depends on, and returns. Takes the memory of its
  /// outputs first, holding no lock; then, in one step, becomes visible and is enqueued. Throws
  /// OutOfMemory, UsageError for a read of what was never written, or Cancelled when the batch's
  /// stop token ends a wait for memory; then nothing was changed. Charged to the batch that this
  /// thread has open, if any.
  ///
  /// On a GPU the closure is called before this returns. It holds back those alone who submit to
  /// its stream, or who use what it writes, or write what it reads.
  void submit(std::string_view name, const Uses& uses, Kernel kernel,
              CallSite where = CallSite::here());
  /// The same, charged to `batch`, whoever began it. UsageError when that is closed before the
  /// operation is enqueued: it may be while this waits for memory. Nothing was changed then.
  void submit(const Batch& batch, std::string_view name, const Uses& uses, Kernel kernel,
              CallSite where = CallSite::here());

  /// A new tensor with a copy of `host`, made in order on the copy-in stream. `host` must stay as
  /// it is until the copy is done: see `written`. A GPU copies late only from page-locked memory,
  /// such as its host upstream's; other memory is first copied to some, before this returns.
  [[nodiscard]] Tensor copy_in(std::span<const float> host, const Shape& shape,
                               std::string_view label = "copy_in",
                               CallSite where = CallSite::here());
  /// The same, charged to `batch` as in `submit`.
  [[nodiscard]] Tensor copy_in(const Batch& batch, std::span<const float> host, const Shape& shape,
                               std::string_view label = "copy_in",
                               CallSite where = CallSite::here());

  /// The point at which the last submitted write of `tensor` is done.
  [[nodiscard]] Point written(const Tensor& tensor);
  /// Whether the device has passed `point`. Does not wait.
  [[nodiscard]] bool reached(Point point) { return device_.progress().reached(point); }

  /// Waits for the last submitted write of this tensor, and for nothing else. Rethrows the error
  /// that its contents carry, every time.
  void wait(const Tensor& tensor, CallSite where = CallSite::here());
  /// Waits for everything submitted. Throws the first error since the last call, once.
  void wait_all(CallSite where = CallSite::here());
  /// The contents, after all submitted writes. Waits and throws as `wait` does.
  [[nodiscard]] std::vector<float> read(const Tensor& tensor, CallSite where = CallSite::here());

  /// The pool's books, after settling what the device is done with. Does not wait.
  [[nodiscard]] MemoryInfo memory_info();
  /// Stalls and batches so far, from one moment.
  [[nodiscard]] AdmissionStatistics admission() const { return admission_.statistics(); }
  /// Waits of the policy `barrier` after batches.
  [[nodiscard]] Stalls barriers() const;
  /// How many operations were enqueued so far, also those of `copy_in` and `read`.
  [[nodiscard]] std::uint64_t operations() const;
  /// As given at construction.
  [[nodiscard]] Policy policy() const noexcept { return options_.policy; }

 private:
  friend class Batch;
  class HostBuffer;
  class Turn;

  void close(TicketRef ticket, bool learn) noexcept;
  /// `batch`, for `what`; UsageError unless it is open, and this scheduler's.
  [[nodiscard]] Owner owner_of(const Batch& batch, std::string_view what) const;
  /// The batch that this thread has open, if any.
  [[nodiscard]] Owner owner_here() const;
  [[noreturn]] static void refuse_closed(std::string_view what);
  void stop_accepting(Ticket& ticket) noexcept;
  /// Of its batch, for timelines; 0: none.
  [[nodiscard]] static std::uint32_t number_of(const Owner& owner) noexcept;
  void submit_to(const Owner& owner, std::string_view name, const Uses& uses, Kernel&& kernel,
                 CallSite where);
  [[nodiscard]] Tensor copy_in_to(const Owner& owner, std::span<const float> host,
                                  const Shape& shape, std::string_view label, CallSite where);
  /// It is closed; without this the next look would ask the ledger.
  void forget_batch(TicketRef ticket) noexcept;
  [[nodiscard]] std::shared_ptr<HostBuffer> make_copyable(std::span<const float>& host,
                                                          const Owner& owner, CallSite where);
  [[nodiscard]] TensorState& state_of(const Tensor& tensor, std::string_view what) const;
  void allocate_outputs(Operation& operation, StreamRole role, const Owner& owner);
  [[nodiscard]] bool try_enqueue(Operation& operation, const Uses& uses, const Owner& owner);
  /// Whether a closure runs now that `uses` has to come behind.
  [[nodiscard]] bool in_the_way(const Uses& uses) const WEIR_REQUIRES(order_);
  void enqueue(Operation& operation, const Uses& uses, TicketRef owner, Lock& lock)
      WEIR_REQUIRES(order_);
  void drop_superfluous(Operation& operation);
  void make_waits(StreamRole role, const Waits& waits) WEIR_REQUIRES(order_);
  /// The point of the operation that was enqueued last on a stream.
  [[nodiscard]] Point last_submitted(StreamRole role) const;
  void wait_device();
  void wait_device_or_log() noexcept;

  DeviceBackend& device_;
  Pool& pool_;
  const PoolLimits limits_;
  const SchedulerOptions options_;
  const std::uint64_t serial_;  ///< tells schedulers apart that had the same address
  Admission admission_;
  TensorMemory memory_;
  Pool host_pool_;  ///< what copies go through that would hold whoever submits
  struct Abandon {
    void operator()(TensorTable* table) const noexcept;
  };
  std::unique_ptr<TensorTable, Abandon> table_;  ///< deletes itself then, or after the last handle
  OperationList operations_;

  mutable Mutex order_{LockRank::kOrder};
  /// For each stream, how far it was already made to wait for each other stream.
  std::array<Waits, kStreamRoles> waited_ WEIR_GUARDED_BY(order_){};
  std::array<std::uint64_t, kStreamRoles> submitted_ WEIR_GUARDED_BY(order_){};
  std::array<bool, kStreamRoles> enqueuing_ WEIR_GUARDED_BY(order_){};  ///< a Turn has the stream
  std::condition_variable_any enqueued_;                                ///< a Turn has ended
  Stalls barriers_ WEIR_GUARDED_BY(order_);
  std::uint64_t enqueued_operations_ WEIR_GUARDED_BY(order_) = 0;
};

}  // namespace weir
