// weir-gpu: finds the command and runs it. Called by tools/gpu-check.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "commit.hpp"
#include "gpu_programs.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/program/run_main.hpp"
#include "tools/program/standard_streams.hpp"

namespace weir::gpu_check {
namespace {

/// Runs the suites that need a GPU. Returns 2 if nothing is selected.
int run_tests(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "%s: what is '%s'?\n", argv[0], argv[1]);
    return 2;
  }
  const int status = RUN_ALL_TESTS();
  // GoogleTest accepts a run without tests; a check must not.
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (!testing::GTEST_FLAG(list_tests) && tests.test_to_run_count() == 0) {
    std::fprintf(stderr, "%s: no test ran: %s\n", argv[0],
                 tests.total_test_count() == 0 ? "this program was built without any"
                                               : "no test matches the filter");
    return 2;
  }
  return status;
}

constexpr std::array kOwn{
    Command{"info", "the GPU, driver, toolkit, cuBLAS and commit; --json FILE for a program",
            run_info},
    Command{"test", "the suites that need a GPU, with GoogleTest's flags", run_tests},
    Command{"facts", "facts that only a driver with a GPU can report, as JSON", run_facts},
};

template <typename Use>
void for_each_command(const Use& use) {
  for (const Command& command : kOwn) use(command);
  for (const Command& command : kPrograms) use(command);
}

std::string usage() {
  std::string text =
      "usage: weir-gpu COMMAND [ARGUMENT...]\n\n"
      "What tools/gpu-check runs, in one program that can be carried to a machine with a GPU.\n\n";
  for_each_command([&](const Command& command) {
    const std::string_view name = command.name;
    text += "  " + std::string(name) + std::string(name.size() < 8 ? 8 - name.size() : 1, ' ') +
            command.what + "\n";
  });
  return text + "\ncommit " + kCommit + "\n";
}

int run(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "--help" || word == "-h") {
    require_printed(print(usage()));
    return 0;
  }
  const Command* found = nullptr;
  for_each_command([&](const Command& command) {
    if (word == command.name) found = &command;
  });
  if (found == nullptr) {
    const std::string what =
        word.empty() ? "a command is needed" : "'" + std::string(word) + "' is not a command";
    std::fprintf(stderr, "weir-gpu: %s (see weir-gpu --help)\n", what.c_str());
    return 2;
  }
  std::string name = "weir-gpu " + std::string(word);
  argv[1] = name.data();
  return found->run(argc - 1, argv + 1);
}

}  // namespace
}  // namespace weir::gpu_check

int main(int argc, char** argv) {
  weir::fail_unprinted_at_exit();
  return weir::run_main("weir-gpu", [&] { return weir::gpu_check::run(argc, argv); });
}
