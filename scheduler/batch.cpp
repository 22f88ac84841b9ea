#include "scheduler/batch.hpp"

#include <exception>
#include <utility>

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

}  // namespace weir
