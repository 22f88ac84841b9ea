#include "scheduler/batch.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "scheduler/barrier.hpp"
#include "scheduler/scheduler.hpp"

namespace weir {

Batch::Batch(Scheduler& scheduler, Owner owner, bool joined) noexcept
    : scheduler_(&scheduler),
      ticket_(owner.batch),
      stop_(std::move(owner.stop)),
      joined_(joined),
      exceptions_(std::uncaught_exceptions()) {}

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    end(true);
    scheduler_ = other.scheduler_.exchange(nullptr);
    ticket_ = other.ticket_;
    stop_ = other.stop_;
    joined_ = other.joined_;
    exceptions_ = other.exceptions_;
  }
  return *this;
}

Batch::~Batch() { end(std::uncaught_exceptions() <= exceptions_); }

void Batch::end(bool learn) noexcept {
  Scheduler* scheduler = scheduler_.exchange(nullptr);
  if (scheduler != nullptr && !joined_) scheduler->close(ticket_, learn);
}

void Scheduler::close(TicketRef ticket, bool learn) noexcept {
  stop_accepting(*ticket.ticket);
  const CallSite begun = ticket.ticket->where;
  const std::uint32_t number = ticket.ticket->number;
  admission_.close(ticket, learn);
  forget_batch(ticket);
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
