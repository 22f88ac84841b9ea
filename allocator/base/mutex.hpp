#pragma once

// The project's locks and, only here, their order. A thread may take a lock only if it holds none
// of the same or a higher rank, so locks cannot deadlock. Each lock is a capability of clang's
// thread-safety analysis: shared fields name theirs with WEIR_GUARDED_BY.

#include <cstdint>
#include <mutex>

#if defined(__clang__)
#define WEIR_TSA(x) __attribute__((x))
#else
#define WEIR_TSA(x)
#endif
#define WEIR_CAPABILITY(name) WEIR_TSA(capability(name))
#define WEIR_SCOPED_CAPABILITY WEIR_TSA(scoped_lockable)
#define WEIR_GUARDED_BY(lock) WEIR_TSA(guarded_by(lock))
#define WEIR_PT_GUARDED_BY(lock) WEIR_TSA(pt_guarded_by(lock))
#define WEIR_REQUIRES(...) WEIR_TSA(requires_capability(__VA_ARGS__))
#define WEIR_ACQUIRE(...) WEIR_TSA(acquire_capability(__VA_ARGS__))
#define WEIR_RELEASE(...) WEIR_TSA(release_capability(__VA_ARGS__))
#define WEIR_EXCLUDES(...) WEIR_TSA(locks_excluded(__VA_ARGS__))
#define WEIR_NO_THREAD_SAFETY_ANALYSIS WEIR_TSA(no_thread_safety_analysis)

namespace weir {

/// First to last. A thread holds at most one lock of each rank.
enum class LockRank : std::uint8_t {
  kSources,    ///< allocator: the process's registered sources
  kOrder,      ///< scheduler: the order of submissions
  kAdmission,  ///< scheduler: ledger and line
  kPool,       ///< allocator: a pool's blocks and accounting
  kSlab,       ///< allocator: small blocks cut from a pool's blocks
  kStream,     ///< a device: a stream's queue
  kLog,        ///< allocator: the list of open allocation logs
  kLeaf,       ///< free lists and the like: no lock above is taken inside
  kTimeline,   ///< the recorder: called under any other lock
};

namespace detail {
/// One bit for each rank that the calling thread holds. Lock and unlock are inline and touch only
/// this and the mutex: the shortest paths take several locks.
inline constinit thread_local std::uint32_t held_ranks = 0;
[[noreturn]] void refuse_lock(LockRank rank, std::uint32_t held) noexcept;
}  // namespace detail

/// Returns one bit for each rank that the calling thread holds. A wait starts with none.
[[nodiscard]] inline std::uint32_t held_lock_ranks() noexcept { return detail::held_ranks; }

/// Taking it out of order ends the program with a message that names both ranks.
class WEIR_CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(LockRank rank) noexcept : rank_(rank) {}
  void lock() WEIR_ACQUIRE() {
    const auto rank = static_cast<unsigned>(rank_);
    if ((detail::held_ranks >> rank) != 0) detail::refuse_lock(rank_, detail::held_ranks);
    mutex_.lock();
    detail::held_ranks |= 1U << rank;
  }
  void unlock() WEIR_RELEASE() {
    detail::held_ranks &= ~(1U << static_cast<unsigned>(rank_));
    mutex_.unlock();
  }

 private:
  friend class Condition;

  std::mutex mutex_;
  const LockRank rank_;
};

/// Holds a Mutex for a scope. Unlock and relock it around a call that must run without the lock.
/// To sleep, see condition.hpp. BasicLockable, for std::condition_variable_any.
class WEIR_SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) WEIR_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~Lock() WEIR_RELEASE() {
    if (held_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() WEIR_ACQUIRE() {
    mutex_.lock();
    held_ = true;
  }
  void unlock() WEIR_RELEASE() {
    held_ = false;
    mutex_.unlock();
  }

 private:
  friend class Condition;

  Mutex& mutex_;
  bool held_ = true;
};

}  // namespace weir
