#include "trainer/commands/command.hpp"

#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "allocator/base/version.hpp"
#include "tools/program/command_line.hpp"
#include "tools/program/further_reading.hpp"
#include "tools/program/standard_streams.hpp"
#include "trainer/commands/flags.hpp"

namespace weir {
namespace {

sem_t asked;
constexpr std::array kStops{SIGINT, SIGTERM, SIGHUP};

/// Starts the program's first own thread, so a lack of room for threads shows here.
template <typename Function>
void start_thread(Function function) {
  try {
    std::thread(function).detach();
  } catch (const std::system_error& error) {
    throw Error("no thread can be started (" + error.code().message() +
                "): raise `ulimit -v` or `ulimit -u`");
  }
}

/// Turns SIGINT, SIGTERM and SIGHUP into a stop: the first asks the program to end with its results
/// so far, the second ends it at once. Call once. A signal that is ignored now stays ignored.
/// Throws Error if no thread can be started.
std::stop_token stop_on_interrupt() {
  // Both live to the end of the process, because the thread below may still wait for a signal then.
  static auto* const kSource = new std::stop_source;
  sem_init(&asked, 0, 0);
  // Unlike a handler, a thread may take locks and wake waiters.
  start_thread([] {
    while (sem_wait(&asked) != 0 && errno == EINTR) continue;
    for (const int signal : kStops) (void)std::signal(signal, SIG_DFL);
    std::fputs("\nweir-train: stopping after the submitted work; interrupt again to stop at once\n",
               stderr);
    kSource->request_stop();
  });
  // A handler instead of blocked signals: the BLAS has started threads before main, and a signal
  // blocked only in later threads would go to one of those and kill the program.
  struct sigaction action {};
  action.sa_handler = [](int) { sem_post(&asked); };
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : kStops) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  return kSource->get_token();
}

}  // namespace

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

int run_program(int argc, char** argv) {
  const std::stop_token stop = stop_on_interrupt();
  // A closed table reader becomes an error, reported after the figures are in their file. So does a
  // file that exceeds the size limit.
  for (const int signal : {SIGPIPE, SIGXFSZ}) (void)std::signal(signal, SIG_IGN);
  set_log_level(log_level_from_environment());
  warn_of_unknown_variables(environ);
  CommandLine line("train under a memory budget: the host runs ahead only as far as memory allows");
  line.add_version("weir-train " + std::string(kVersion));
  line.require_command();
  line.set_page("docs/main-job.md");
  line.set_exit_codes(training_exit_codes());
  const std::vector<Command> commands{add_run_command(line), add_compare_command(line),
                                      add_predict_command(line), add_dispatch_command(line),
                                      add_wide_command(line)};
  if (const auto code = line.parse("weir-train", argc, argv)) return *code;
  require_standard_output();
  return line.run([&] {
    for (const Command& command : commands) {
      if (command.line.named()) return command.run(stop);
    }
    return 1;  // not reached: one subcommand is required
  });
}

}  // namespace weir
