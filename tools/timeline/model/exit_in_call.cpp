#include "tools/timeline/model/exit_in_call.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "allocator/base/file_size_signal.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/no_cancel.hpp"

namespace weir::timeline {
namespace {

constinit std::atomic<bool (*)() noexcept> call_check{nullptr};

iovec part(std::string_view text) noexcept {
  // writev only reads it.
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

void set_call_check(bool (*is_in_call)() noexcept) noexcept { call_check.store(is_in_call); }

bool exits_in_call() noexcept {
  if (held_lock_ranks() != 0) return true;
  const auto is_in_call = call_check.load();
  return is_in_call != nullptr && is_in_call();
}

void say_unlocked(LogLevel level, std::string_view text) noexcept {
  if (level > log_level()) return;
  const NoCancel no_cancel;
  const FileSizeSignalBlocked blocked;
  const std::array line{part("weir: "), part(text), part("\n")};
  (void)!writev(STDERR_FILENO, line.data(), static_cast<int>(line.size()));
}

}  // namespace weir::timeline
