#pragma once

/// @file
/// The asynchronous scheduler. Any number of frontend threads submit operations, which run late on
/// the device in the order of their tensors' dependencies. A frontend is held back only in
/// begin_batch, or in an allocation that does not fit.
///
/// A scheduler has one device. A program with two devices has two schedulers; a DeviceLink copies
/// between them, and a call with a tensor of another one is refused.
///
/// Thread-safe, but no two threads may use one Tensor handle at once. A thread that serves the
/// device (inside a submitted closure) may not call anything here: UsageError. docs/architecture.md
/// follows one batch through these functions.

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/adapt/allocation.hpp"
#include "allocator/attempt.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/pool.hpp"
#include "scheduler/admission/admission.hpp"
#include "scheduler/admission/policy.hpp"
#include "scheduler/batch.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/dtype.hpp"
#include "scheduler/host_data.hpp"
#include "scheduler/kernel.hpp"
#include "scheduler/operation.hpp"
#include "scheduler/tensor.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {

/// Options of a scheduler. PolicyOptions reads what users set.
struct SchedulerOptions {
  std::optional<Bytes> budget{};       ///< the pool's own by default
  Policy policy = Policy::kThrottled;  ///< what holds a frontend back
  RunAhead run_ahead{};                ///< the soft limit of `throttled`
  /// The longest that an allocation of a younger open batch waits for an older one.
  std::chrono::nanoseconds grace = std::chrono::seconds(10);
};

/// A list of tensors, valid during one call: `{x, weights}`, or any span.
class TensorList {
 public:
  TensorList() = default;
  /// Handles between braces, for the call in which they are written.
  TensorList(std::initializer_list<Tensor> tensors) noexcept
      : tensors_(std::data(tensors), tensors.size()) {}
  /// Refers to `tensors`, which must outlive it.
  TensorList(std::span<const Tensor> tensors) noexcept : tensors_(tensors) {}
  /// Refers to `tensors`, which must outlive it.
  TensorList(const std::vector<Tensor>& tensors) noexcept : tensors_(tensors) {}
  /// Returns the first.
  [[nodiscard]] auto begin() const noexcept { return tensors_.begin(); }
  /// Returns the position after the last.
  [[nodiscard]] auto end() const noexcept { return tensors_.end(); }

 private:
  std::span<const Tensor> tensors_;
};

/// Which tensors an operation uses, and how. A tensor updated in place is in both lists.
struct Uses {
  TensorList reads{};                        ///< in the order of Inputs
  TensorList writes{};                       ///< in the order of Outputs
  StreamRole stream = StreamRole::kCompute;  ///< where it runs
};

/// Memory as the program sees it. free + allocated + awaiting == total, and allocated + awaiting +
/// cached == reserved.
struct MemoryInfo {
  Bytes total;      ///< the budget
  Bytes free;       ///< can be allocated: total − allocated − awaiting
  Bytes requested;  ///< requested by current holders, before rounding
  Bytes allocated;  ///< allocated, after rounding
  Bytes awaiting;   ///< freed, with the device not known to be done
  Bytes cached;     ///< free, and kept for the next request
  Bytes reserved;   ///< obtained from the device
};

/// Throws UsageError on a thread that serves a device; `call` names the refused call.
void refuse_device_thread(std::string_view call);

/// Submits work to one device. See the file's description for threads and waits.
class Scheduler {
 public:
  /// Sets the pool's limits from the options. Throws UsageError if the device lacks the budget or
  /// another scheduler has the pool. `device` and `pool` must outlive it.
  Scheduler(Device& device, Pool& pool, const SchedulerOptions& options = {});
  /// Waits for everything submitted. Tensors that are still held lose their memory. Other threads
  /// may drop handles meanwhile; their other calls must have returned, and every batch must be
  /// closed.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Returns a tensor of float32 without memory; the first operation that writes it allocates the
  /// memory.
  [[nodiscard]] Tensor empty(const Shape& shape, std::string_view label = {}) {
    return empty(shape, DType::kFloat32, label);
  }
  /// The same, of any type.
  [[nodiscard]] Tensor empty(const Shape& shape, DType dtype, std::string_view label = {});

  /// Opens a batch, or joins this thread's open one. Waits here until it is admitted. Throws
  /// Cancelled if `options.stop` ends the wait, and UsageError for a weight of 0.
  [[nodiscard]] Batch begin_batch(std::string_view kind, const BatchOptions& options = {},
                                  CallSite where = CallSite::here());

  /// Enqueues `kernel` behind everything it depends on, and returns. Allocates its outputs first,
  /// without a lock; then, in one step, makes it visible and enqueues it. Throws OutOfMemory,
  /// UsageError for a read of a tensor never written and for a tensor that is elsewhere, or
  /// Cancelled if the batch's stop token ends a wait for memory; then nothing has changed. Charged
  /// to this thread's open batch, if any.
  ///
  /// On a GPU the closure runs before this returns. Meanwhile only those wait who submit to its
  /// stream, use what it writes, or write what it reads.
  void submit(std::string_view name, const Uses& uses, Kernel kernel,
              CallSite where = CallSite::here());
  /// The same, charged to `batch`, whoever began it. Throws UsageError if that is closed before the
  /// operation is enqueued, for example while this waits for memory; then nothing has changed.
  void submit(const Batch& batch, std::string_view name, const Uses& uses, Kernel kernel,
              CallSite where = CallSite::here());

  /// Throws UsageError, in one line that says where it is, for a tensor of another scheduler or an
  /// empty handle. Every call checks its own tensors; this is for one that is submitted later.
  void require_here(std::string_view name, const Uses& uses) const;

  /// Returns a new tensor with a copy of `host`, in its dtype, made in order on the copy-in stream.
  /// `host` is any vector, array or span of an Element. It is copied before this returns, to host
  /// memory from which the device copies late; a temporary or moved vector is taken over instead
  /// where the device copies late from it; what is wrapped in `weir::borrowed` stays the caller's.
  /// If such copies already take half of the device's host memory, this waits for its own on the
  /// device instead. Throws UsageError for other elements than `shape` has, and as `submit` does.
  [[nodiscard]] Tensor copy_in(const HostData& host, const Shape& shape,
                               std::string_view label = "copy_in",
                               CallSite where = CallSite::here());
  /// The same, charged to `batch` as in `submit`.
  [[nodiscard]] Tensor copy_in(const Batch& batch, const HostData& host, const Shape& shape,
                               std::string_view label = "copy_in",
                               CallSite where = CallSite::here());

  /// Writes `host` over the elements of `tensor` from `first` on, in order on the copy-in stream. A
  /// tensor without memory gets it, not cleared. Throws UsageError if it has no such elements, or
  /// others than `host`. For `host` the rules of copy_in hold. Writing all elements ends the
  /// tensor's error; after writing some, the others are still lost, so the error stays.
  void write(const Tensor& tensor, std::size_t first, const HostData& host,
             CallSite where = CallSite::here());

  /// Returns the point at which the last submitted write of `tensor` is done.
  [[nodiscard]] Point written(const Tensor& tensor);
  /// Whether the device has passed `point`. Does not wait.
  [[nodiscard]] bool reached(Point point) { return device_.progress().reached(point); }

  /// Waits only for the last submitted write of this tensor. Rethrows the error of its contents,
  /// every time.
  void wait(const Tensor& tensor, CallSite where = CallSite::here());
  /// Waits for everything submitted. Throws the first error since the last call, once.
  void wait_all(CallSite where = CallSite::here());
  /// Returns the contents, after all submitted writes. Waits and throws as `wait` does. Throws
  /// UsageError if the elements are not of type T.
  template <Element T = float>
  [[nodiscard]] std::vector<T> read(const Tensor& tensor, CallSite where = CallSite::here()) {
    const std::shared_ptr<const void> copy = read_all(tensor, DTypeOf<T>::kValue, where);
    const T* const first = static_cast<const T*>(copy.get());
    return {first, first + tensor.shape().elements()};
  }
  /// Copies the elements from `first` on to `out`, in the same way. A large tensor is so read in
  /// pieces, with host memory for one piece. `out` is any vector, array or span of an Element.
  /// Throws UsageError if the tensor has no such elements.
  void read(const Tensor& tensor, std::size_t first, const HostRoom& out,
            CallSite where = CallSite::here());

  /// Returns the pool's statistics, after settling what the device has finished. Does not wait.
  [[nodiscard]] MemoryInfo memory_info();
  /// Returns stalls and batches so far, from one moment.
  [[nodiscard]] AdmissionStatistics admission() const { return admission_.statistics(); }
  /// Returns the footprint that the next batch of this kind is expected to have: what the kind has
  /// shown, before that the largest known kind's; none while no batch has ended.
  [[nodiscard]] std::optional<Bytes> expected_footprint(std::string_view kind) {
    return admission_.expected(kind);
  }
  /// Returns the waits after batches under the policy `barrier`.
  [[nodiscard]] Stalls barriers() const;
  /// Returns the number of operations enqueued so far, including those of `copy_in` and `read`.
  [[nodiscard]] std::uint64_t operations() const;
  /// As given at construction.
  [[nodiscard]] Policy policy() const noexcept { return options_.policy; }
  /// Returns its device's name.
  [[nodiscard]] const std::string& place() const noexcept { return table_->place(); }

 private:
  friend class Batch;
  friend class DeviceLink;
  struct HostBuffer;
  struct HostSource;
  class Turn;
  /// How a call uses a tensor, for messages.
  struct Argument {
    std::string_view kind;
    std::size_t number;  ///< from 1 on; 0: it is the only one
  };

  void close(TicketRef ticket, bool learn) noexcept;
  /// Returns `batch` as an owner for `what`. Throws UsageError unless it is open and of this
  /// scheduler.
  [[nodiscard]] Owner owner_of(const Batch& batch, std::string_view what) const;
  [[noreturn]] static void refuse_closed(std::string_view what);
  void stop_accepting(Ticket& ticket) noexcept;
  /// Returns its batch's number, for timelines; 0: none.
  [[nodiscard]] static std::uint32_t number_of(const Owner& owner) noexcept;
  void submit_to(const Owner& owner, std::string_view name, const Uses& uses, Kernel&& kernel,
                 CallSite where);
  [[nodiscard]] Tensor copy_in_to(const Owner& owner, const HostData& host, const Shape& shape,
                                  std::string_view label, CallSite where);
  /// Submits the copy of `host` to the one tensor that `uses` writes, from byte `start` on.
  void copy_host(const Owner& owner, std::string_view name, const HostData& host, const Uses& uses,
                 std::size_t start, CallSite where);
  /// Returns what a copy of `host` reads, and keeps it if the copy may run late.
  [[nodiscard]] HostSource keep(const HostData& host, const Owner& owner, CallSite where);
  /// Returns host memory for a copy on this stream, or nothing and what the pool found. May wait
  /// until the owner's stop, then throws Cancelled.
  [[nodiscard]] Allocation try_host_memory(Bytes size, StreamRole role, std::string_view label,
                                           const Owner& owner, CallSite where, Attempt& attempt);
  /// Returns host memory to read to. Waits for copies to the device if these have it. Throws
  /// OutOfMemory, or Cancelled.
  [[nodiscard]] Allocation host_memory_for_read(Bytes size, const Owner& owner, CallSite where);
  [[nodiscard]] TensorState& state_of(const Tensor& tensor, std::string_view what,
                                      const Argument& argument = {"tensor", 0}) const;
  [[noreturn]] void refuse_elsewhere(std::string_view what, const Argument& argument,
                                     const TensorState& state) const;
  /// Throws UsageError unless `tensor` has these elements.
  void require_elements(const Tensor& tensor, std::string_view what, std::size_t first,
                        std::size_t count) const;
  /// Throws UsageError unless the elements of `tensor` have this type.
  static void require_dtype(const Tensor& tensor, std::string_view what, DType dtype);
  /// Returns a host copy of all elements, which have type `dtype`; waits and throws as `read` does.
  [[nodiscard]] std::shared_ptr<const void> read_all(const Tensor& tensor, DType dtype,
                                                     CallSite where);
  /// Returns a host copy of these elements; waits and throws as `read` does.
  [[nodiscard]] std::shared_ptr<HostBuffer> read_back(const Tensor& tensor, std::size_t first,
                                                      std::size_t count, CallSite where);
  void allocate_outputs(Operation& operation, StreamRole role, const Owner& owner);
  [[nodiscard]] bool try_enqueue(Operation& operation, const Uses& uses, const Owner& owner);
  /// Whether a running closure must finish before `uses`.
  [[nodiscard]] bool in_the_way(const Uses& uses) const WEIR_REQUIRES(order_);
  void enqueue(Operation& operation, const Uses& uses, TicketRef owner, Lock& lock)
      WEIR_REQUIRES(order_);
  void drop_superfluous(Operation& operation);
  void make_waits(StreamRole role, const Waits& waits) WEIR_REQUIRES(order_);
  /// Returns the point of the stream's last enqueued operation.
  [[nodiscard]] Point last_submitted(StreamRole role) const;
  void wait_device();
  void wait_device_or_log() noexcept;

  DeviceBackend& device_;
  Pool& pool_;
  const PoolLimits limits_;
  const SchedulerOptions options_;
  Admission admission_;
  TensorMemory memory_;
  Pool host_pool_;  ///< for copies that would otherwise block the submitter
  struct Abandon {
    void operator()(TensorTable* table) const noexcept;
  };
  std::unique_ptr<TensorTable, Abandon> table_;  ///< deletes itself now, or with the last handle
  OperationList operations_;

  mutable Mutex order_{LockRank::kOrder};
  /// For each stream, how far it already waits for each other stream.
  std::array<Waits, kStreamRoles> waited_ WEIR_GUARDED_BY(order_){};
  std::array<std::uint64_t, kStreamRoles> submitted_ WEIR_GUARDED_BY(order_){};
  std::array<bool, kStreamRoles> enqueuing_ WEIR_GUARDED_BY(order_){};  ///< a Turn has the stream
  std::condition_variable_any enqueued_;                                ///< a Turn has ended
  Stalls barriers_ WEIR_GUARDED_BY(order_);
  std::uint64_t enqueued_operations_ WEIR_GUARDED_BY(order_) = 0;
};

}  // namespace weir
