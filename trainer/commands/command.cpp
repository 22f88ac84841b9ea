#include "trainer/commands/command.hpp"

#include <cstdio>

#include "allocator/base/error.hpp"
#include "tools/program/further_reading.hpp"

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

void say_out_of_memory(const std::string& report) {
  if (report.empty()) return;
  const std::string page =
      further_reading({.name = "", .page = "docs/out-of-memory.md"}, folder_of_program());
  std::fprintf(stderr, "weir-train: %s\n%s", report.c_str(),
               page.empty() ? "" : ("  more: " + page + "\n").c_str());
}

void say_diverged(bool diverged) {
  if (!diverged) return;
  std::fputs(
      "weir-train: training diverged: its loss or its weights are not finite; try a smaller --lr\n",
      stderr);
}

}  // namespace weir
