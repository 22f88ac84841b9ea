#pragma once

// Stacks that take turns on one thread. Each runs until it pauses itself, and continues there when
// resumed. As many as a block has threads.

#include <cstddef>

namespace weir::standin {

class Fiber {
 public:
  /// `run(argument)` is called again each time the fiber is resumed after it has ended.
  Fiber(void (*run)(void*), void* argument);
  /// The fiber must not run; objects on its stack are not destroyed.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// For its creator's thread: runs it until it pauses or `run` ends. Returns true if it ended.
  bool resume();
  /// For the fiber itself: returns to resume()'s caller.
  void pause();

 private:
  static void enter();
  void loop();
  void switch_in();
  void switch_out();

  void (*run_)(void*);
  void* argument_;
  void* stack_ = nullptr;
  void* own_place_ = nullptr;     ///< where it goes on
  void* caller_place_ = nullptr;  ///< where resume()'s caller goes on
  bool ended_ = false;
  // What the sanitizers need to know of a change of stacks.
  [[maybe_unused]] void* own_fake_stack_ = nullptr;
  [[maybe_unused]] const void* caller_stack_ = nullptr;
  [[maybe_unused]] std::size_t caller_stack_bytes_ = 0;
  [[maybe_unused]] void* own_state_ = nullptr;
  [[maybe_unused]] void* caller_state_ = nullptr;
};

}  // namespace weir::standin
