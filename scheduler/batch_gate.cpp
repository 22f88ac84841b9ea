#include "scheduler/batch_gate.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/budget_source.hpp"
#include "scheduler/memory_attempts.hpp"

namespace weir {
namespace {

BatchStreams batch_streams(Progress& progress, std::span<const StreamId> streams) {
  if (streams.empty() || streams.size() > BatchGate::kMostStreams) {
    throw UsageError("a batch gate has 1 to 4 streams, not " + std::to_string(streams.size()));
  }
  BatchStreams found{.progress = progress};
  std::ranges::copy(streams, found.ids.begin());
  return found;
}

}  // namespace

GatedBatch::GatedBatch(BatchGate& gate, TicketRef ticket, std::stop_token stop) noexcept
    : gate_(&gate),
      ticket_(ticket),
      stop_(std::move(stop)),
      exceptions_(std::uncaught_exceptions()) {}

GatedBatch::GatedBatch(GatedBatch&& other) noexcept
    : gate_(std::exchange(other.gate_, nullptr)),
      ticket_(other.ticket_),
      stop_(std::move(other.stop_)),
      exceptions_(other.exceptions_) {}

GatedBatch& GatedBatch::operator=(GatedBatch&& other) noexcept {
  if (this != &other) {
    end(true);
    gate_ = std::exchange(other.gate_, nullptr);
    ticket_ = other.ticket_;
    stop_ = std::move(other.stop_);
    exceptions_ = other.exceptions_;
  }
  return *this;
}

GatedBatch::~GatedBatch() { end(std::uncaught_exceptions() <= exceptions_); }

void GatedBatch::end(bool learn) noexcept {
  BatchGate* const gate = std::exchange(gate_, nullptr);
  if (gate != nullptr) gate->admission_.close(ticket_, learn);
}

void* GatedBatch::allocate(Bytes bytes, StreamId stream, std::string_view label) {
  if (gate_ == nullptr) throw UsageError(std::string(label) + ": the batch is closed");
  return gate_->allocate({ticket_, stop_}, bytes, stream, label);
}

BatchGate::BatchGate(Pool& pool, Progress& progress, std::span<const StreamId> streams,
                     const BatchGateOptions& options)
    : pool_(pool),
      limits_(pool, pool.budget(), waiting_first(running_out(Policy::kThrottled))),
      streams_(streams.size()),
      admission_(pool, batch_streams(progress, streams), Policy::kThrottled, options.run_ahead,
                 options.grace) {
  if (BudgetSource* const source = pool_.budget_source()) source->serve(&admission_);
}

BatchGate::~BatchGate() {
  if (BudgetSource* const source = pool_.budget_source()) source->serve(nullptr);
}

GatedBatch BatchGate::begin(std::string_view kind, const BatchOptions& options, CallSite where) {
  if (options.weight == 0) {
    throw UsageError("begin '" + std::string(kind) + "': weight 0; allowed: 1 or more");
  }
  const TicketRef ticket = admission_.open(kind, options, where);
  for (std::size_t i = 0; i < streams_; ++i) ticket.ticket->touched.insert(kAllRoles.at(i));
  return {*this, ticket, options.stop};
}

void* BatchGate::allocate(const Owner& owner, Bytes bytes, StreamId stream,
                          std::string_view label) {
  if (bytes == Bytes{}) return nullptr;
  MemoryAttempts attempts(pool_, admission_, owner, label);
  for (;;) {
    Attempt attempt = attempts.begin();
    void* const pointer = pool_.try_allocate(bytes, stream, label, attempt);
    if (pointer != nullptr) {
      charge(pointer, {owner.batch, attempt.block}, stream, attempts.waits(attempt));
      return pointer;
    }
    attempts.count(attempt);
    attempts.wait_or_fail(attempt);
  }
}

void BatchGate::charge(void* pointer, const Charge& charge, StreamId stream, const Stalls& waits) {
  try {
    const Lock lock(mutex_);
    charges_.emplace(pointer, charge);
  } catch (...) {
    (void)pool_.deallocate(pointer, stream);
    throw;
  }
  admission_.note_allocated(charge.batch, charge.block, waits);
}

Freed BatchGate::deallocate(void* pointer, StreamId stream) {
  Charges::node_type charged;
  {
    // First: once it is free, another thread may get the address.
    const Lock lock(mutex_);
    charged = charges_.extract(pointer);
  }
  try {
    const Freed freed = pool_.deallocate(pointer, stream);
    if (charged.empty()) {
      admission_.note_given_back();
    } else {
      const auto& [batch, block] = charged.mapped();
      admission_.note_freed(batch, block, freed == Freed::kAwaiting);
    }
    return freed;
  } catch (...) {
    const Lock lock(mutex_);
    if (!charged.empty()) charges_.insert(std::move(charged));
    throw;
  }
}

AdmissionStatistics BatchGate::statistics() {
  admission_.settle();
  return admission_.statistics();
}

}  // namespace weir
