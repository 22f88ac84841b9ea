// A program for `weir run` to start. It executes its arguments in order:
//
//   print NAME     NAME=value of a variable on standard output, or `NAME is not set`
//   say TEXT       TEXT on standard output
//   process        its process number on standard output
//   summary        the output of libweir.so at the end of a program that used CUDA: that of process
//                  4242 in the file FAKE_SUMMARY
//   cut            the same, ended in the middle
//   children N     N processes of this program in turn, each with a summary
//   catch          `ready`, then `got SIGNAL` for each until SIGTERM, on standard error
//   raise N        ends itself by that signal
//   exit N

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::testing {
namespace {

void write_summary(bool whole) {
  const char* variable = std::getenv("WEIR_SUMMARY");
  if (variable == nullptr) return;
  std::string path = variable;
  if (const std::size_t at = path.find("%p"); at != std::string::npos) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  std::ifstream sample(std::getenv("FAKE_SUMMARY"));
  std::string json{std::istreambuf_iterator<char>(sample), {}};
  json.replace(json.find("4242"), 4, std::to_string(getpid()));
  std::ofstream(path) << (whole ? json : json.substr(0, json.size() / 2));
}

void catch_signals() {
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::fputs("ready\n", stderr);
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    std::fprintf(stderr, "got SIG%s\n", sigabbrev_np(signal));
    if (signal == SIGTERM) return;
  }
}

void start_children(const char* self, int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      execl(self, self, "summary", nullptr);
      _exit(127);
    }
    waitpid(child, nullptr, 0);
  }
}

void print_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) {
    std::printf("%s=%s\n", name, value);
  } else {
    std::printf("%s is not set\n", name);
  }
}

[[noreturn]] void end_by(int signal) {
  std::fflush(stdout);
  (void)std::signal(signal, SIG_DFL);
  kill(getpid(), signal);
  for (;;) pause();
}

int run(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const char* const next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "summary" || word == "cut") {
      write_summary(word == "summary");
      continue;
    }
    if (word == "process") {
      std::printf("%d\n", static_cast<int>(getpid()));
      continue;
    }
    if (word == "catch") {
      catch_signals();
      continue;
    }
    ++i;
    if (word == "print") print_variable(next);
    if (word == "say") std::printf("%s\n", next);
    if (word == "children") start_children(argv[0], std::atoi(next));
    if (word == "raise") end_by(std::atoi(next));
    if (word == "exit") return std::atoi(next);
  }
  return 0;
}

}  // namespace
}  // namespace weir::testing

int main(int argc, char** argv) { return weir::testing::run(argc, argv); }
