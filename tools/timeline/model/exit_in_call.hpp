#pragma once

// Detects exit handlers that run inside a call of ours. exit() in a signal handler runs them on the
// interrupted thread, which may hold our locks and never releases them.

#include <string_view>

#include "allocator/base/log.hpp"

namespace weir::timeline {

/// Sets a function that knows calls which hold no lock of ours at the moment. `is_in_call` returns
/// whether the calling thread is in one, and takes no lock. Null removes it.
void set_call_check(bool (*is_in_call)() noexcept) noexcept;

/// For exit handlers: returns whether the calling thread is in a call that will never resume. Take
/// no lock then.
[[nodiscard]] bool exits_in_call() noexcept;

/// Like `log`, but writes to standard error by one system call, without a lock.
void say_unlocked(LogLevel level, std::string_view text) noexcept;

}  // namespace weir::timeline
