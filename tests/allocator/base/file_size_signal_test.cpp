// Files that must not grow, written in a child process.

#include "allocator/base/file_size_signal.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace weir {
namespace {

/// A write that the system refuses with this signal. Exits with 0 if nothing else happens.
[[noreturn]] void write_too_much() {
  (void)std::signal(SIGXFSZ, SIG_DFL);
  std::FILE* const file = std::tmpfile();
  const rlimit none{0, 0};
  if (file == nullptr || setrlimit(RLIMIT_FSIZE, &none) != 0) std::_Exit(1);
  {
    const FileSizeSignalBlocked blocked;
    errno = 0;
    if (write(fileno(file), "x", 1) >= 0 || errno != EFBIG) std::_Exit(2);
  }
  std::_Exit(0);
}

bool is_pending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

/// Exits with 0 if a signal that the program itself blocks is still pending afterwards.
[[noreturn]] void keep_the_programs_own() {
  sigset_t own;
  sigemptyset(&own);
  sigaddset(&own, SIGXFSZ);
  (void)pthread_sigmask(SIG_BLOCK, &own, nullptr);
  (void)raise(SIGXFSZ);
  { const FileSizeSignalBlocked blocked; }
  std::_Exit(is_pending() ? 0 : 1);
}

TEST(FileSizeSignal, AFileThatMustNotGrowIsAnErrorOfTheWriteAlone) {
  EXPECT_EXIT(write_too_much(), ::testing::ExitedWithCode(0), "");
}

TEST(FileSizeSignal, OneThatTheProgramHoldsBackStays) {
  EXPECT_EXIT(keep_the_programs_own(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weir
