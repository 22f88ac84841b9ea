#pragma once

// Scratch memory of a thread, to be used again by the next call that needs some.

#include <utility>

namespace weir {

/// The calling thread's own T, made at its first use and kept until the thread ends. A program may
/// still free memory after that, in exit handlers and destructors of statics, when a plain
/// thread_local was destroyed: it gets a new one then, which stays.
template <typename T>
[[nodiscard]] T& thread_scratch() {
  static constinit thread_local T* mine = nullptr;
  struct End {
    ~End() { delete std::exchange(mine, nullptr); }
  };
  if (mine == nullptr) {
    mine = new T;
    static thread_local const End kEnd;
    (void)kEnd;
  }
  return *mine;
}

}  // namespace weir
