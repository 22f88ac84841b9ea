#pragma once

// Who begins batches. Each thread is a producer, and ends with its thread.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir {

struct Producer {
  using End = std::shared_ptr<const std::atomic<bool>>;

  Producer(std::uint64_t id, End end = {}) noexcept : number(id), ended(std::move(end)) {}

  std::uint64_t number;
  End ended;  ///< set once it begins no more batches; null: it never ends
};

/// Returns the calling thread's number in the process, from 1 on. Never used again, unlike a thread
/// id.
[[nodiscard]] std::uint64_t this_thread_number() noexcept;

/// Returns the calling thread as a producer. In a destructor of a thread_local, the thread may
/// already count as ended.
[[nodiscard]] Producer this_producer();

}  // namespace weir
