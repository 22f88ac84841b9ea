#include "trainer/commands/command.hpp"

#include <cstdio>

#include "allocator/base/error.hpp"

namespace weir {

int exit_code(Outcome outcome, bool diverged) {
  switch (outcome) {
    case Outcome::kFinished:
      return diverged ? 1 : 0;
    case Outcome::kOutOfMemory:
      return exit_code(OutOfMemory(""));
    case Outcome::kInterrupted:
      return exit_code(Cancelled(""));
  }
  return 1;
}

void say_diverged(bool diverged) {
  if (!diverged) return;
  std::fputs(
      "weir-train: training diverged: its loss or its weights are not finite; try a smaller --lr\n",
      stderr);
}

}  // namespace weir
