#pragma once

// Threads that begin one batch each, beside a thread that waits.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "allocator/progress/progress.hpp"
#include "support/gate.hpp"

namespace weir::testing {

inline constexpr int kNewcomerLoops = 4;

/// Returns how many batches of new threads are admitted while a batch of this thread stands in the
/// line; 100 at most. Four loops begin them, each one after the other.
///
/// `run` runs a batch beside which no other can be open, and calls its argument inside.
/// `before_wait` is called before a wait for the device. This thread's second batch has to wait
/// there, until the hook returns or `go_on` is called.
template <typename Run>
int admitted_before_own(const Run& run, std::function<void(Point)>& before_wait,
                        const std::function<void()>& go_on) {
  constexpr int kMost = 100;
  std::atomic<int> admitted = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> loops;
  const auto begin_on_new_threads = [&] {
    while (!stop && admitted < kMost) std::thread([&] { run([&] { ++admitted; }); }).join();
  };
  std::atomic_flag is_in_line;
  before_wait = [&](Point) {
    if (is_in_line.test_and_set()) return;
    for (int i = 0; i < kNewcomerLoops; ++i) loops.emplace_back(begin_on_new_threads);
    give_others_a_chance();
    go_on();
  };
  run([] {});
  int before = 0;
  run([&] { before = admitted; });
  stop = true;
  for (std::thread& loop : loops) loop.join();
  before_wait = nullptr;
  return before;
}

}  // namespace weir::testing
