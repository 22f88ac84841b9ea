#pragma once

// What the library keeps of each thread between its calls.

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/preload/driver/marks.hpp"

namespace weir::preload {

class Arena;

/// What a signal handler's call leaves for the end of the call that it interrupts.
struct Postponed {
  enum class What : std::uint8_t { kNothing, kCount, kFree, kFreeInOrder, kDestroy, kFollow };
  std::atomic<What> what{What::kNothing};
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  bool per_thread = false;
};

/// Plain data without constructor and destructor: threads end after the library's code can run.
struct ThisThread {
  static constexpr std::size_t kMostPostponed = 32;
  static constexpr std::size_t kDomains = 16;
  static constexpr std::size_t kStarted = 4;

  std::uint64_t number = 0;                           ///< see thread_number
  std::shared_ptr<std::atomic<bool>>* end = nullptr;  ///< see end_of_this_thread
  std::uint64_t own_stream = 0;  ///< its number, once it uses its own default stream
  std::uint32_t launches = 0;
  std::uint64_t refused = 0;             ///< bytes: see Spilled
  Arena* batch = nullptr;                ///< of its open batch
  std::uint64_t joined = 0;              ///< begins inside that
  Marks begun;                           ///< by weir_batch_begin
  std::array<Marks, kDomains> ranges{};  ///< of NVTX, by domain
  /// NVTX's open ranges that need not nest and are batches, oldest first, then zeros.
  std::array<std::uint64_t, kStarted> started{};
  /// Atomic because handlers interrupt each other; no other thread looks.
  std::atomic<std::size_t> postponed{0};
  std::array<Postponed, kMostPostponed> calls{};  ///< the first `postponed` of these
};
inline constinit thread_local ThisThread this_thread{};

/// Returns the calling thread's number. Unlike the system's, never reused: a new thread's default
/// stream is a new stream. A thread that runs destructors of its variables after its end was
/// reported gets a new number.
[[nodiscard]] std::uint64_t thread_number() noexcept;

/// Becomes true when the calling thread ends. Null if the system has no room. Throws
/// std::bad_alloc.
using ThreadEnded = std::shared_ptr<const std::atomic<bool>>;
[[nodiscard]] ThreadEnded end_of_this_thread();

/// Notes that the calling thread uses its own default stream, which other threads cannot name. From
/// now on another thread's fence on everything has an event on the legacy stream, which waits for
/// that stream.
void use_own_stream() noexcept;

/// Which threads use their own default streams.
struct OwnStreams {
  bool here = false;        ///< the calling thread
  bool elsewhere = false;   ///< another live thread
  std::uint64_t ended = 0;  ///< number of ended threads that did
};
[[nodiscard]] OwnStreams own_streams() noexcept;

}  // namespace weir::preload
