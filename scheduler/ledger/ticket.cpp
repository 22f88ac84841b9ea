#include "scheduler/ledger/ticket.hpp"

#include <cstddef>

namespace weir {
namespace {

std::int64_t nanoseconds_of(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

std::chrono::nanoseconds read(const std::atomic<std::int64_t>& time) {
  return std::chrono::nanoseconds(time.load(std::memory_order_relaxed));
}

}  // namespace

void Ticket::note_ran(StreamRole role, const TaskTime& time) noexcept {
  Ran& on = ran.at(index_of(role));
  const auto relaxed = std::memory_order_relaxed;
  const std::int64_t ends = nanoseconds_of(time.end);
  if (on.device_time.fetch_add(time.device_time.count(), relaxed) == 0) {
    on.gap.store(time.gap.count(), relaxed);
    on.begun.store(ends - time.device_time.count(), relaxed);
  }
  on.starved.fetch_add(time.starved.count(), relaxed);
  on.ended.store(ends, relaxed);
}

BatchRun Ticket::run() const noexcept {
  BatchRun runs{};
  for (const std::size_t role : touched) {
    const Ran& on = ran.at(role);
    runs.at(role) = {.device_time = read(on.device_time),
                     .gap = read(on.gap),
                     .starved = read(on.starved),
                     .begun = read(on.begun),
                     .ended = read(on.ended)};
  }
  return runs;
}

}  // namespace weir
