#include "scheduler/batch.hpp"

#include <chrono>
#include <exception>

#include "scheduler/scheduler.hpp"

namespace weir {

Batch::Batch(Scheduler& scheduler, TicketRef ticket) noexcept
    : scheduler_(&scheduler), ticket_(ticket), exceptions_(std::uncaught_exceptions()) {}

Batch& Batch::operator=(Batch&& other) noexcept {
  if (this != &other) {
    end(true);
    scheduler_ = std::exchange(other.scheduler_, nullptr);
    ticket_ = other.ticket_;
    exceptions_ = other.exceptions_;
  }
  return *this;
}

Batch::~Batch() { end(std::uncaught_exceptions() <= exceptions_); }

void Batch::end(bool learn) noexcept {
  Scheduler* scheduler = std::exchange(scheduler_, nullptr);
  if (scheduler != nullptr && ticket_.ticket != nullptr) scheduler->close(ticket_, learn);
}

void Scheduler::close(TicketRef ticket, bool learn) noexcept {
  admission_.close(ticket, learn);
  forget_batch(ticket);
  if (options_.policy != Policy::kBarrier) return;
  const auto start = std::chrono::steady_clock::now();
  wait_device_or_log();
  admission_.settle();
  const Lock lock(order_);
  ++barriers_.count;
  barriers_.total += std::chrono::steady_clock::now() - start;
}

}  // namespace weir
