#include "tools/preload/driver/call.hpp"

#include <ctime>

#include "allocator/base/time_after.hpp"

namespace weir::preload {

Call::Clock::time_point Call::until(std::chrono::nanoseconds most) noexcept {
  if (until_ != Clock::time_point{}) return until_;
  if (InCallback::now()) return until_ = Clock::time_point::min();
  timespec now{};  // at the resolution of a kernel tick: every allocation asks
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const Clock::time_point coarse(std::chrono::seconds(now.tv_sec) +
                                 std::chrono::nanoseconds(now.tv_nsec));
  return until_ = time_after(coarse, most);
}

}  // namespace weir::preload
