#include "tools/replay/subject/progress.hpp"

#include <algorithm>

namespace weir::replay {

std::uint64_t ReplayProgress::passed_now() const noexcept {
  const std::uint64_t now = now_.load(std::memory_order_relaxed);
  return std::max(now > lag_ ? now - lag_ : 0, waited_for_.load(std::memory_order_relaxed));
}

Point ReplayProgress::record(StreamId stream) {
  return {.stream = stream, .sequence = now_.load(std::memory_order_relaxed)};
}

std::uint64_t ReplayProgress::passed(StreamId /*stream*/) { return passed_now(); }

bool ReplayProgress::wait(Point point, std::stop_token stop) {
  if (point.sequence <= passed_now()) return true;
  if (stop.stop_requested()) return false;
  waits_.fetch_add(1, std::memory_order_relaxed);
  std::uint64_t before = waited_for_.load();
  while (before < point.sequence && !waited_for_.compare_exchange_weak(before, point.sequence)) {
  }
  return true;
}

void ReplayProgress::make_wait(StreamId /*waiter*/, Point /*point*/) {}

}  // namespace weir::replay
