// Measures what libweir.so adds to a program's calls, on the stand-in driver. Every repetition is a
// new process, with or without the library in turn, so that both see the same load.

#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/shared/table.hpp"
#include "swap_in_paths.hpp"
#include "tools/program/argument_pointers.hpp"

namespace weir::bench {
namespace {

/// Returns our environment with `preload` preloaded and no setting of Weir except quiet.
std::vector<std::string> environment_with(const std::string& preload) {
  std::vector<std::string> result;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    if (!variable.starts_with("LD_PRELOAD=") && !variable.starts_with("WEIR_") &&
        !variable.starts_with("MXNET_")) {
      result.push_back(variable);
    }
  }
  if (!preload.empty()) result.push_back("LD_PRELOAD=" + preload);
  return result;
}

/// Returns all output of the program; empty if it failed.
std::string output_of(std::vector<std::string> arguments, std::vector<std::string> environment) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments.front().c_str(), &actions, nullptr,
                  argument_pointers(arguments).data(), argument_pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string text;
  std::array<char, 256> part{};
  ssize_t length = 0;
  while (failed == 0 && (length = read(pipe_ends[0], part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(length));
  }
  close(pipe_ends[0]);
  int status = 0;
  const bool ended = failed == 0 && waitpid(child, &status, 0) == child;
  return ended && status == 0 ? text : std::string();
}

void run(benchmark::State& state, const std::string& figure, bool swapped_in) {
  for ([[maybe_unused]] auto _ : state) {
    const std::string text = output_of({kSwapInCalls, figure, swapped_in ? "swapped-in" : "driver"},
                                       environment_with(swapped_in ? kSwapIn : ""));
    const double ns = std::strtod(text.c_str(), nullptr);
    if (ns <= 0) state.SkipWithError("the program failed");
    state.SetIterationTime(ns * 1e-9);
  }
}

void add_one(const std::string& name, const std::string& figure, bool swapped_in) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [figure, swapped_in](benchmark::State& state) { run(state, figure, swapped_in); })
      ->UseManualTime()
      ->Iterations(1);
}

void add(Table& table, Row row) {
  const std::string figure = row.figure.substr(row.figure.find('/') + 1);
  row.against = row.figure + "/driver";
  add_one(row.figure, figure, true);
  add_one(row.against, figure, false);
  table.add(row);
}

}  // namespace

void add_swap_in(Table& table) {
  if (*kSwapIn == '\0') return;  // built without a CUDA toolkit
  add(table, {.figure = "swap-in/alloc-free", .most_ns = 500});
  add(table, {.figure = "swap-in/alloc-free/batches:32", .most_ns = 350});
  for (const char* streams : {"1", "100", "10000"}) {
    add(table, {.figure = std::string("swap-in/alloc-free/known:") + streams, .most_ns = 500});
  }
  for (const char* streams : {"1", "100", "10000"}) {
    add(table,
        {.figure = std::string("swap-in/alloc-free/batches:32/known:") + streams, .most_ns = 350});
  }
  for (const char* ended : {"streams-ended:1000", "streams-ended:100000"}) {
    add(table, {.figure = std::string("swap-in/alloc-free/") + ended, .most_ns = 500});
  }
  add(table, {.figure = "swap-in/alloc-free-async"});
  for (const char* launch : {"launch", "launch/known:100", "launch/known:10000"}) {
    add(table, {.figure = std::string("swap-in/") + launch, .most_more_ns = 15});
  }
  for (const char* figure : {"launch/enqueued", "get-proc-address", "process"}) {
    add(table, {.figure = std::string("swap-in/") + figure, .shows_more = true});
  }
}

}  // namespace weir::bench
