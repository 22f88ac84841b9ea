#pragma once

#include <utility>

namespace weir {

/// Returns the calling thread's T, reused by its next call and deleted when the thread ends. Exit
/// handlers and destructors of statics may free memory later, when a plain thread_local is gone;
/// they get a new T that is never deleted.
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
