#include "trainer/command.hpp"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "allocator/error.hpp"

namespace weir {

int print(const std::string& text) {
  errno = 0;
  return std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0 ? 0 : errno;
}

void require_printed(int error) {
  if (error == 0) return;
  throw Error("standard output cannot be written (" + std::generic_category().message(error) + ")");
}

int exit_code(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      return 0;
    case Outcome::kOutOfMemory:
      return exit_code(OutOfMemory(""));
    case Outcome::kInterrupted:
      return exit_code(Cancelled(""));
  }
  return 1;
}

}  // namespace weir
