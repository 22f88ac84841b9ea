#include "scheduler/memory_attempts.hpp"

#include <string>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

Attempt MemoryAttempts::begin() noexcept {
  freed_ = admission_.given_back();
  return {.limit = {.stop = owner_.stop}};
}

void MemoryAttempts::wait_or_fail(const Attempt& attempt) {
  const bool cancelled = may_wait_ && owner_.stop.stop_requested();
  if (cancelled || last_) admission_.note_waited(owner_.batch, waits_);
  if (cancelled) throw Cancelled(std::string(label_) + kMemoryWaitCancelled);
  if (last_) pool_.fail(attempt);
  if (!deadline_) {
    // From now on each attempt follows a reading of the pressure, so that later frees are noticed.
    deadline_ = time_after_now(admission_.grace());
    pressure_ = pool_.pressure();
    return;
  }
  // Try once more before failing: it was woken to fail, or a free after the last attempt is not
  // reported yet.
  const TimelineSlice slice;
  const auto start = std::chrono::steady_clock::now();
  last_ = !admission_.await_memory({.batch = owner_.batch,
                                    .block = attempt.block,
                                    .looked = freed_,
                                    .pressure = pressure_,
                                    .deadline = *deadline_,
                                    .stop = owner_.stop});
  waits_ += {.count = 1, .total = std::chrono::steady_clock::now() - start};
  if (slice.sink() != nullptr) {
    slice.write({.bytes = attempt.block.count,
                 .name = slice.sink()->name(label_),
                 .kind = TimelineKind::kMemoryWait});
  }
  pressure_ = pool_.pressure();
}

}  // namespace weir
