#pragma once

// Exit handlers in the middle of a call of ours. exit() in a signal handler runs them on the thread
// that the signal interrupted. That thread may hold our locks, and never goes on to release them.

#include <string_view>

#include "allocator/base/log.hpp"

namespace weir::timeline {

/// Sets who knows of calls that hold no lock of ours at the moment. `is_in_call` tells whether the
/// calling thread is in one, and takes no lock. Null takes it back.
void set_call_check(bool (*is_in_call)() noexcept) noexcept;

/// For exit handlers: whether the calling thread is in a call that will never go on. Nothing that
/// takes a lock may be done then.
[[nodiscard]] bool exits_in_call() noexcept;

/// As `log`, but to standard error by one call of the system, without a lock.
void say_unlocked(LogLevel level, std::string_view text) noexcept;

}  // namespace weir::timeline
