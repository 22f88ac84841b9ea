#pragma once

// What a library of the stand-in knows of forks. A child has none of the parent's other threads,
// and what one of them had locked, or was initializing, stays so. Hence every function that takes a
// lock, waits, or has a static object that is initialized at the first call looks at is_forked()
// before. As with the real driver, nothing works in a child of a process that has used it.
//
// Each library has its own copy: it may be the only one of them that the parent used.

#include <pthread.h>

#include <atomic>

namespace weir::standin {

inline constinit std::atomic<bool> in_use{false};
inline constinit std::atomic<bool> forked{false};

/// Registered when the library is loaded: the first call may be under way in another thread.
inline const int kAtFork = pthread_atfork(nullptr, nullptr, [] { forked = in_use.load(); });

/// From now on a child is a forked one.
inline void begin_use() { in_use = true; }

/// True in a child of fork whose parent had begun to use the library, and in all children of that.
inline bool is_forked() { return forked; }

}  // namespace weir::standin
