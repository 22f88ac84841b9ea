#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/timeline/sink.hpp"
#include "scheduler/barrier.hpp"
#include "scheduler/ledger/batch_timeline.hpp"
#include "scheduler/memory_attempts.hpp"

namespace weir {
namespace {

/// Options of the pool for staged copies. Readers use the rest of the device's host memory.
PoolOptions host_pool_options() {
  PoolOptions options;
  options.kind = PoolKind::kRound;
  options.budget = BudgetRequest{.percent = 100};
  options.log = std::string();
  options.place = {.name = "host copies", .host = true};
  return options;
}

}  // namespace

void refuse_device_thread(std::string_view call) {
  if (!on_device_thread()) return;
  throw UsageError(std::string(call) +
                   " inside a submitted operation: a thread that serves the device may neither "
                   "submit nor wait");
}

namespace {

BatchStreams batch_streams(DeviceBackend& device) {
  BatchStreams streams{.progress = device.progress()};
  for (const StreamRole role : kAllRoles) streams.ids.at(index_of(role)) = device.stream(role);
  return streams;
}

}  // namespace

Scheduler::Scheduler(Device& device, Pool& pool, const SchedulerOptions& options)
    : device_(device.backend()),
      pool_(pool),
      limits_(pool, options.budget.value_or(pool.budget()),
              waiting_first(running_out(options.policy))),
      options_(options),
      admission_(pool, batch_streams(device_), options.policy, options.run_ahead, options.grace),
      memory_(pool, device_, admission_, options.policy),
      host_pool_({device_.host_upstream(), device_.progress()}, host_pool_options()),
      table_(new TensorTable(memory_, device_.name())),
      operations_(*table_) {
  if (BudgetSource* const source = pool_.budget_source()) source->serve(&admission_);
}

void Scheduler::Abandon::operator()(TensorTable* table) const noexcept { table->abandon(); }

Scheduler::~Scheduler() {
  if (BudgetSource* const source = pool_.budget_source()) source->serve(nullptr);
  wait_device_or_log();
  device_.drain();  // after a device error, the wait ended before the operations did
  table_.reset();
  admission_.settle();
}

Tensor Scheduler::empty(const Shape& shape, DType dtype, std::string_view label) {
  if (shape.dimensions() == 0) throw UsageError("empty: a tensor needs a shape");
  return {table_->acquire(shape, dtype, label), shape, dtype};
}

Owner Scheduler::owner_of(const Batch& batch, std::string_view what) const {
  const Scheduler* scheduler = batch.scheduler_.load();
  if (scheduler != nullptr && scheduler != this) {
    throw UsageError(std::string(what) + ": the batch belongs to another scheduler");
  }
  if (scheduler == nullptr || !batch.ticket_.accepts()) refuse_closed(what);
  return {batch.ticket_, batch.stop_};
}

void Scheduler::refuse_closed(std::string_view what) {
  throw UsageError(std::string(what) + ": the batch is closed: submit before it is, or without it");
}

std::uint32_t Scheduler::number_of(const Owner& owner) noexcept {
  return owner.batch.ticket != nullptr ? owner.batch.ticket->number : 0;
}

Batch Scheduler::begin_batch(std::string_view kind, const BatchOptions& options, CallSite where) {
  refuse_device_thread("begin_batch");
  if (Owner outer = admission_.owner_here(); outer.batch.ticket != nullptr) {
    return Batch(*this, std::move(outer), true);
  }
  if (options.weight == 0) {
    throw UsageError("begin_batch '" + std::string(kind) + "': weight 0; allowed: 1 or more");
  }
  const TicketRef ticket = admission_.open(kind, options, where);
  ticket.ticket->accepts.store(ticket.serial, std::memory_order_release);
  return Batch(*this, {ticket, options.stop}, false);
}

TensorState& Scheduler::state_of(const Tensor& tensor, std::string_view what,
                                 const Argument& argument) const {
  if (tensor.state_ == nullptr) {
    throw UsageError(std::string(what) + ": an empty tensor handle");
  }
  if (tensor.state_->table != table_.get()) refuse_elsewhere(what, argument, *tensor.state_);
  return *tensor.state_;
}

void Scheduler::refuse_elsewhere(std::string_view what, const Argument& argument,
                                 const TensorState& state) const {
  std::string text = std::string(what) + ": its " + std::string(argument.kind);
  if (argument.number != 0) text += " " + std::to_string(argument.number);
  if (state.label.front() != '\0') text += " '" + std::string(state.label.data()) + "'";
  text += " of shape " + state.shape.to_string() + " is on " + state.table->place();
  if (state.table->place() == place()) text += ", of another scheduler";
  throw UsageError(text + ", and it runs on " + place() + ": copy it first (DeviceLink::copy_to)");
}

void Scheduler::require_here(std::string_view name, const Uses& uses) const {
  std::size_t number = 0;
  for (const Tensor& tensor : uses.reads) (void)state_of(tensor, name, {"input", ++number});
  number = 0;
  for (const Tensor& tensor : uses.writes) (void)state_of(tensor, name, {"output", ++number});
}

/// Host memory that the device copies a result to, and whether the copy is done. Shared by the
/// operation and the reader: if the reader's wait throws, the device still copies to it. Freed in
/// copy order.
struct Scheduler::HostBuffer {
  explicit HostBuffer(Allocation allocated) noexcept : memory(std::move(allocated)) {}
  [[nodiscard]] void* data() const noexcept { return memory.data(); }

  Allocation memory;
  bool copied = false;
};

/// What a copy to the device reads. Part of its operation's closure, which lasts until the device
/// is done.
struct Scheduler::HostSource {
  const void* data = nullptr;
  Bytes bytes{};
  Allocation staging{};                 ///< the call's own copy of the elements
  std::shared_ptr<const void> taken{};  ///< a vector that was taken over
  bool late = true;                     ///< false: the call waits for the copy
};

Allocation Scheduler::try_host_memory(Bytes size, StreamRole role, std::string_view label,
                                      const Owner& owner, CallSite where, Attempt& attempt) {
  const TimelineScope scope(number_of(owner), where.file, where.line);
  const StreamId stream = device_.stream(role);
  attempt.limit.stop = owner.stop;
  Allocation memory(host_pool_, host_pool_.try_allocate(size, stream, label, attempt), size,
                    stream);
  if (!memory && owner.stop.stop_requested()) {
    throw Cancelled(std::string(label) + kMemoryWaitCancelled);
  }
  return memory;
}

// Ends: each round waits for submitted copies, and without any it is the last.
Allocation Scheduler::host_memory_for_read(Bytes size, const Owner& owner, CallSite where) {
  Attempt attempt;
  const auto ask = [&] {
    return try_host_memory(size, StreamRole::kCopyOut, "read", owner, where, attempt);
  };
  Allocation memory = ask();
  while (!memory) {
    const Point copies = last_submitted(StreamRole::kCopyIn);
    const bool all_free = reached(copies);
    if (!all_free) (void)device_.progress().wait(copies, {.stop = owner.stop});
    memory = ask();
    if (!memory && all_free) host_pool_.fail(attempt);
  }
  return memory;
}

std::shared_ptr<const void> Scheduler::read_all(const Tensor& tensor, DType dtype, CallSite where) {
  (void)state_of(tensor, "read");
  require_dtype(tensor, "read", dtype);
  auto buffer = read_back(tensor, 0, tensor.shape().elements(), where);
  const void* const data = buffer->data();
  return {std::move(buffer), data};
}

void Scheduler::read(const Tensor& tensor, std::size_t first, const HostRoom& out, CallSite where) {
  require_elements(tensor, "read", first, out.size());
  if (out.empty()) return;
  require_dtype(tensor, "read", out.dtype());
  const auto buffer = read_back(tensor, first, out.size(), where);
  std::memcpy(out.data(), buffer->data(), out.bytes().count);
}

void Scheduler::require_dtype(const Tensor& tensor, std::string_view what, DType dtype) {
  if (tensor.dtype() == dtype) return;
  refuse_dtype(std::string(what) + ": the tensor of " + tensor.shape().to_string(), tensor.dtype(),
               dtype);
}

void Scheduler::require_elements(const Tensor& tensor, std::string_view what, std::size_t first,
                                 std::size_t count) const {
  (void)state_of(tensor, what);
  const Shape& shape = tensor.shape();
  const std::size_t elements = shape.elements();
  if (first <= elements && count <= elements - first) return;
  throw UsageError(std::string(what) + ": " + std::to_string(count) + " elements from element " +
                   std::to_string(first) + " on, of a tensor of " + shape.to_string());
}

std::shared_ptr<Scheduler::HostBuffer> Scheduler::read_back(const Tensor& tensor, std::size_t first,
                                                            std::size_t count, CallSite where) {
  refuse_device_thread("read");
  const Barrier barrier("read", where, device_.timeline_source());
  const std::size_t element = size_of(tensor.dtype());
  const Bytes size{count * element};
  const bool catches_up = !reached(written(tensor));
  auto buffer =
      std::make_shared<HostBuffer>(host_memory_for_read(size, admission_.owner_here(), where));
  submit(
      "read", {.reads = {tensor}, .stream = StreamRole::kCopyOut},
      [buffer, start = first * element, size](Stream& stream, Inputs in, Outputs /*out*/) {
        stream.copy(buffer->data(), in.bytes(0).subspan(start).data(), size);
        buffer->copied = true;
      },
      where);
  (void)device_.progress().wait(last_submitted(StreamRole::kCopyOut), {});
  if (catches_up) admission_.note_synchronized();
  if (buffer->copied) return buffer;
  if (auto error = table_->error(state_of(tensor, "read"))) std::rethrow_exception(error);
  throw Error("read: the contents were lost to an error and have been overwritten since");
}

Scheduler::HostSource Scheduler::keep(const HostData& host, const Owner& owner, CallSite where) {
  HostSource source{.data = host.data(), .bytes = host.bytes()};
  if (host.empty()) return source;
  if (host.may_copy_late() && device_.copies_late(host.data())) {
    source.taken = host.take();
    return source;
  }
  const Pressure pressure = host_pool_.pressure();
  Attempt attempt;
  // The other half is for reads, links and readers.
  if (pressure.held + source.bytes <= Bytes{pressure.budget.count / 2}) {
    source.staging =
        try_host_memory(source.bytes, StreamRole::kCopyIn, "copy_in", owner, where, attempt);
  }
  source.late = static_cast<bool>(source.staging);
  if (!source.late) return source;
  std::memcpy(source.staging.data(), host.data(), source.bytes.count);
  source.data = source.staging.data();
  return source;
}

void Scheduler::copy_host(const Owner& owner, std::string_view name, const HostData& host,
                          const Uses& uses, std::size_t start, CallSite where) {
  HostSource source = keep(host, owner, where);
  const bool late = source.late;
  submit_to(
      owner, name, uses,
      [start, source = std::move(source)](Stream& stream, Inputs /*in*/, Outputs out) {
        stream.copy(out.bytes(0).subspan(start).data(), source.data, source.bytes);
      },
      where);
  if (late) return;
  const Barrier barrier(name, where, device_.timeline_source());
  (void)device_.progress().wait(last_submitted(StreamRole::kCopyIn), {});
  admission_.note_synchronized();
}

Tensor Scheduler::copy_in(const HostData& host, const Shape& shape, std::string_view label,
                          CallSite where) {
  return copy_in_to(admission_.owner_here(), host, shape, label, where);
}

Tensor Scheduler::copy_in(const Batch& batch, const HostData& host, const Shape& shape,
                          std::string_view label, CallSite where) {
  return copy_in_to(owner_of(batch, label), host, shape, label, where);
}

Tensor Scheduler::copy_in_to(const Owner& owner, const HostData& host, const Shape& shape,
                             std::string_view label, CallSite where) {
  refuse_device_thread("copy_in");
  if (host.size() != shape.elements()) {
    throw UsageError("copy_in: " + std::to_string(host.size()) + " elements for a tensor of " +
                     shape.to_string());
  }
  Tensor tensor = empty(shape, host.dtype(), label);
  copy_host(owner, label, host, {.writes = {tensor}, .stream = StreamRole::kCopyIn}, 0, where);
  return tensor;
}

void Scheduler::write(const Tensor& tensor, std::size_t first, const HostData& host,
                      CallSite where) {
  refuse_device_thread("write");
  require_elements(tensor, "write", first, host.size());
  if (host.empty()) return;
  require_dtype(tensor, "write", host.dtype());
  // What was there stays where it is not written: an update in place, so its error stays, too.
  const bool updates = host.size() != tensor.shape().elements() && written(tensor).sequence != 0;
  const std::span<const Tensor> before(&tensor, updates ? 1 : 0);
  copy_host(admission_.owner_here(), "write", host,
            {.reads = before, .writes = {tensor}, .stream = StreamRole::kCopyIn},
            first * size_of(tensor.dtype()), where);
}

Point Scheduler::written(const Tensor& tensor) {
  const TensorState& state = state_of(tensor, "written");
  const Lock lock(order_);
  return {device_.stream(state.history.writer),
          state.history.version == 0 ? 0 : state.history.write_sequence};
}

void Scheduler::wait(const Tensor& tensor, CallSite where) {
  refuse_device_thread("wait");
  const TensorState& state = state_of(tensor, "wait");
  const Barrier barrier("wait", where, device_.timeline_source());
  const Point point = written(tensor);
  const bool catches_up = !reached(point);
  (void)device_.progress().wait(point, {});
  if (catches_up) admission_.note_synchronized();
  if (auto error = table_->error(state)) std::rethrow_exception(error);
}

Point Scheduler::last_submitted(StreamRole role) const {
  const Lock lock(order_);
  return {device_.stream(role), submitted_.at(index_of(role))};
}

void Scheduler::wait_device() {
  std::exception_ptr first;  // of a failed stream; the others are still awaited
  for (const StreamRole role : kAllRoles) {
    Point point = last_submitted(role);
    try {
      // Also covers waits whose operation was not enqueued.
      point = device_.progress().record(device_.stream(role));
    } catch (const std::exception& error) {
      log(LogLevel::kDebug, std::string("waiting for operations alone: ") + error.what());
    }
    try {
      (void)device_.progress().wait(point, {});
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void Scheduler::wait_device_or_log() noexcept {
  try {
    wait_device();
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("waiting for the device failed: ") + error.what());
  }
}

void Scheduler::wait_all(CallSite where) {
  refuse_device_thread("wait_all");
  const Barrier barrier("wait_all", where, device_.timeline_source());
  wait_device();
  admission_.note_synchronized();
  if (auto error = table_->take_first()) std::rethrow_exception(error);
}

MemoryInfo Scheduler::memory_info() {
  refuse_device_thread("memory_info");
  admission_.settle();
  const Statistics statistics = pool_.statistics();
  return {.total = statistics.budget,
          .free = minus_or_zero(statistics.budget, statistics.held.current),
          .requested = statistics.requested.current,
          .allocated = statistics.allocated.current,
          .awaiting = statistics.awaiting.current,
          .cached = statistics.cached.current,
          .reserved = statistics.reserved.current};
}

Stalls Scheduler::barriers() const {
  const Lock lock(order_);
  return barriers_;
}

std::uint64_t Scheduler::operations() const {
  const Lock lock(order_);
  return enqueued_operations_;
}

void Scheduler::close(TicketRef ticket, bool learn) noexcept {
  stop_accepting(*ticket.ticket);
  const CallSite begun = ticket.ticket->where;
  const std::uint32_t number = ticket.ticket->number;
  admission_.close(ticket, learn);
  if (options_.policy != Policy::kBarrier) return;
  const Barrier barrier("barrier", begun, device_.timeline_source(), number);
  const auto start = std::chrono::steady_clock::now();
  wait_device_or_log();
  admission_.settle();
  const Lock lock(order_);
  ++barriers_.count;
  barriers_.total += std::chrono::steady_clock::now() - start;
}

void Scheduler::stop_accepting(Ticket& ticket) noexcept {
  Lock lock(order_);
  ticket.accepts.store(0, std::memory_order_release);
  // A running closure belongs to the batch, so the points must come after it. A closure that closes
  // its own batch would wait for itself.
  while (ticket.enqueuing != 0 && !on_device_thread()) enqueued_.wait(lock);
}

}  // namespace weir
