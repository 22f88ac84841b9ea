#include "tools/program/standard_streams.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"

namespace weir {
namespace {

std::atomic<bool> failure_was_returned{false};  ///< the caller of print reports it

}  // namespace

void hold_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    // Opens the lowest free number: those below it are already held.
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
}

std::optional<std::size_t> terminal_columns() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
  const char* const columns = process_environment()("COLUMNS");
  const std::optional<std::uint64_t> named =
      columns == nullptr ? std::nullopt : parse_whole(columns);
  return named == std::uint64_t{0} ? std::nullopt : named;
}

void require_standard_output() {
  const int flags = fcntl(STDOUT_FILENO, F_GETFL);
  const bool writable = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
  require_printed(writable ? 0 : EBADF);
}

void fail_unprinted_at_exit() {
  (void)std::atexit([] {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
    if (!failure_was_returned) std::fputs("standard output cannot be written\n", stderr);
    std::_Exit(1);
  });
}

int print(const std::string& text) {
  errno = 0;
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return 0;
  failure_was_returned = true;
  return errno;
}

void require_printed(int error) {
  if (error == 0) return;
  throw Error("standard output cannot be written (" + std::generic_category().message(error) + ")");
}

}  // namespace weir
