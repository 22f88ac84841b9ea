// Submission: gives an operation its memory, makes it visible to others and enqueues it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/scheduler.hpp"

namespace weir {
namespace {

[[noreturn]] void refuse_unwritten(const Operation& operation, const TensorState& state) {
  const std::string label = state.label.front() != '\0' ? state.label.data() : "(no label)";
  throw UsageError("operation '" + std::string(operation.name()) + "' reads tensor '" + label +
                   "' of shape " + state.shape.to_string() + ", which nothing has written");
}

/// A call of submit, for timelines.
class Submission {
 public:
  Submission(std::string_view name, StreamId stream, std::uint16_t source) noexcept
      : name_(name),
        stream_(stream),
        source_(source),
        number_(slice_.sink() != nullptr ? next() : 0) {}
  ~Submission() {
    if (slice_.sink() == nullptr) return;
    slice_.write({.id = number_,
                  .stream = stream_.value,
                  .name = slice_.sink()->name(name_),
                  .source = source_,
                  .kind = TimelineKind::kSubmit});
  }
  Submission(const Submission&) = delete;
  Submission& operator=(const Submission&) = delete;
  /// Returns the operation's number; 0 if nothing is recorded.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  static std::uint64_t next() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const TimelineSlice slice_;
  const std::string_view name_;
  const StreamId stream_;
  const std::uint16_t source_;
  const std::uint64_t number_;
};

constexpr std::uint8_t bit_of(StreamRole role) {
  return static_cast<std::uint8_t>(1U << index_of(role));
}

}  // namespace

void Scheduler::submit(std::string_view name, const Uses& uses, Kernel kernel, CallSite where) {
  submit_to(admission_.owner_here(), name, uses, std::move(kernel), where);
}

void Scheduler::submit(const Batch& batch, std::string_view name, const Uses& uses, Kernel kernel,
                       CallSite where) {
  submit_to(owner_of(batch, name), name, uses, std::move(kernel), where);
}

void Scheduler::submit_to(const Owner& owner, std::string_view name, const Uses& uses,
                          Kernel&& kernel, CallSite where) {
  refuse_device_thread("submit");
  if (!kernel) throw UsageError("operation '" + std::string(name) + "' has no kernel");
  require_here(name, uses);
  const TimelineScope scope(number_of(owner), where.file, where.line);
  const Submission submission(name, device_.stream(uses.stream), device_.timeline_source());
  OperationList::Handle operation = operations_.acquire();
  operation->describe(name, where, owner.batch.ticket);
  operation->set_number(submission.number());
  operation->set_kernel(std::move(kernel));
  for (const Tensor& tensor : uses.reads) operation->add_input(tensor);
  for (const Tensor& tensor : uses.writes) operation->add_output(tensor);
  // Inputs must have memory. Checked again under the lock; checked here so that an invalid call
  // does not first allocate, and perhaps wait.
  for (const Operation::Operand& input : operation->inputs()) {
    if (input.state->data.load(std::memory_order_acquire) == nullptr)
      refuse_unwritten(*operation, *input.state);
  }
  try {
    // Allocate without a lock: this may wait, and others must be able to go on.
    allocate_outputs(*operation, uses.stream, owner);
    while (!try_enqueue(*operation, uses, owner)) {
      drop_superfluous(*operation);
      allocate_outputs(*operation, uses.stream, owner);
    }
  } catch (...) {
    for (const auto& [state, allocation] : operation->fresh) memory_.release(allocation);
    throw;
  }
  (void)operation.release();  // the device owns it; it returns to its list when done
}

void Scheduler::allocate_outputs(Operation& operation, StreamRole role, const Owner& owner) {
  for (const Operation::Operand& output : operation.outputs()) {
    TensorState* const state = output.state;
    if (state->data.load(std::memory_order_acquire) != nullptr) continue;
    if (std::ranges::count(operation.fresh, state, &Operation::Fresh::state) != 0) continue;
    const std::string_view label =
        state->label.front() != '\0' ? std::string_view(state->label.data()) : operation.name();
    Operation::Fresh& fresh = operation.fresh.emplace_back(Operation::Fresh{state, {}});
    fresh.allocation = memory_.allocate(state->shape.bytes(state->dtype), role, label, owner);
  }
}

void Scheduler::drop_superfluous(Operation& operation) {
  std::erase_if(operation.fresh, [this](const Operation::Fresh& fresh) {
    if (fresh.state->data.load(std::memory_order_acquire) == nullptr) return false;
    memory_.release(fresh.allocation);
    return true;
  });
}

/// Gives a stream to a closure that runs at once. The closure is user code and may be slow, so it
/// runs without the order lock; calls that must come after it wait for the end of the turn. At most
/// one turn for each stream.
class Scheduler::Turn {
 public:
  Turn(Scheduler& scheduler, const Uses& uses, TicketRef owner,
       Lock& lock) WEIR_NO_THREAD_SAFETY_ANALYSIS : scheduler_(scheduler),
                                                    uses_(uses),
                                                    owner_(owner),
                                                    lock_(lock) {
    mark(true);
    lock_.unlock();
  }
  ~Turn() WEIR_NO_THREAD_SAFETY_ANALYSIS {
    lock_.lock();
    mark(false);
    scheduler_.enqueued_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  void mark(bool begins) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    const auto set = [bit = bit_of(uses_.stream), begins](std::uint8_t& bits) {
      bits = static_cast<std::uint8_t>(begins ? bits | bit : bits & ~bit);
    };
    scheduler_.enqueuing_.at(index_of(uses_.stream)) = begins;
    for (const Tensor& tensor : uses_.reads) set(tensor.state_->being_read);
    for (const Tensor& tensor : uses_.writes) set(tensor.state_->being_written);
    if (owner_.ticket != nullptr) owner_.ticket->enqueuing += begins ? 1 : -1;
  }

  Scheduler& scheduler_;
  const Uses& uses_;
  const TicketRef owner_;
  Lock& lock_;
};

bool Scheduler::in_the_way(const Uses& uses) const {
  if (std::ranges::count(enqueuing_, true) == 0) return false;
  if (enqueuing_.at(index_of(uses.stream))) return true;
  return std::ranges::any_of(uses.reads,
                             [](const Tensor& t) { return t.state_->being_written != 0; }) ||
         std::ranges::any_of(uses.writes, [](const Tensor& t) {
           return (t.state_->being_read | t.state_->being_written) != 0;
         });
}

bool Scheduler::try_enqueue(Operation& operation, const Uses& uses, const Owner& owner) {
  Lock lock(order_);
  while (in_the_way(uses)) enqueued_.wait(lock);
  if (owner.batch.ticket != nullptr && !owner.batch.accepts()) refuse_closed(operation.name());
  for (const Operation::Operand& input : operation.inputs()) {
    if (input.state->history.version == 0) refuse_unwritten(operation, *input.state);
  }
  // Another thread may have given an output its memory meanwhile, or failed to. Exactly the outputs
  // without memory may have a fresh allocation.
  for (const Operation::Operand& output : operation.outputs()) {
    const bool has = output.state->data.load(std::memory_order_relaxed) != nullptr;
    const auto fresh = std::ranges::count(operation.fresh, output.state, &Operation::Fresh::state);
    if (has == (fresh != 0)) return false;
  }
  for (auto& [state, allocation] : operation.fresh) {
    state->memory = allocation;
    state->data.store(static_cast<std::byte*>(allocation.data), std::memory_order_release);
  }
  try {
    operation.bind_views();
    for (const TensorList& used : {uses.reads, uses.writes}) {
      for (const Tensor& tensor : used) memory_.note_use(tensor.state_->memory, uses.stream);
    }
    if (owner.batch.ticket != nullptr) owner.batch.ticket->touched.insert(uses.stream);
    enqueue(operation, uses, owner.batch, lock);
  } catch (...) {
    // Nobody has seen the operation: callers that use its tensors waited during its turn. The
    // memory stays with the operation.
    for (auto& [state, allocation] : operation.fresh) {
      state->memory = {};
      state->data.store(nullptr, std::memory_order_release);
    }
    throw;
  }
  return true;
}

void Scheduler::enqueue(Operation& operation, const Uses& uses, TicketRef owner, Lock& lock) {
  const StreamRole role = uses.stream;
  const auto state_for = [](const Tensor& tensor) -> TensorState& { return *tensor.state_; };
  Waits waits{};
  for (const Tensor& tensor : uses.reads) wait_to_read(state_for(tensor).history, role, waits);
  for (const Tensor& tensor : uses.writes) wait_to_write(state_for(tensor).history, role, waits);
  make_waits(role, waits);
  std::optional<Turn> turn;
  if (device_.runs_in_enqueue()) turn.emplace(*this, uses, owner, lock);
  const std::uint64_t sequence = device_.enqueue(role, operation);
  turn.reset();
  submitted_.at(index_of(role)) = sequence;
  ++enqueued_operations_;
  // The operation may already be done and reused: from here use only the caller's handles.
  for (const Tensor& tensor : uses.reads) {
    note_read(state_for(tensor).history, role, sequence);
  }
  for (const Tensor& tensor : uses.writes) {
    note_write(state_for(tensor).history, role, sequence);
  }
}

void Scheduler::make_waits(StreamRole role, const Waits& waits) {
  for (const StreamRole other : kAllRoles) {
    const std::uint64_t sequence = waits.at(index_of(other));
    std::uint64_t& waited = waited_.at(index_of(role)).at(index_of(other));
    if (sequence <= waited) continue;
    device_.progress().make_wait(device_.stream(role), {device_.stream(other), sequence});
    waited = sequence;
  }
}

}  // namespace weir
