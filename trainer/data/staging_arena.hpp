#pragma once

// A jemalloc arena of its own over an upstream: host memory that a device copies from, which is
// pinned where the device asks for that, cut into buffers of any size.
//
// What the arena once got from the upstream it keeps to its end, so that a loop which allocates the
// same sizes reaches the upstream no more: pinning a page costs far more than a buffer. jemalloc's
// own books need no pinning and come from the operating system. Thread-safe.

#include <cstdint>
#include <memory>

#include "allocator/memory/upstream.hpp"
#include "allocator/statistics.hpp"

namespace weir {

class StagingArena {
 public:
  static constexpr std::size_t kAlignment = 4096;  ///< of every buffer: a page

  /// Grows in steps of at most `growth`, or of one buffer where that is larger. `upstream` must
  /// outlive the arena, and may not have its memory from malloc: that is jemalloc's too, which
  /// knows each page as one arena's. Throws Error when jemalloc has no arena left.
  StagingArena(Upstream& upstream, Bytes growth);
  /// Gives everything back to the upstream, also buffers that are still out.
  ~StagingArena();
  StagingArena(const StagingArena&) = delete;
  StagingArena& operator=(const StagingArena&) = delete;

  /// A buffer of at least `size`, not zero; null when the upstream has no room.
  [[nodiscard]] void* allocate(Bytes size);
  void deallocate(void* buffer) noexcept;

  /// Bytes obtained from the upstream, now and at most: buffers, free ones, and what jemalloc pads.
  [[nodiscard]] Gauge reserved() const;
  /// Bytes that jemalloc has for its books of the arena, pages that it never touched included.
  [[nodiscard]] Gauge books() const;
  /// Calls that reached the upstream for memory, refused ones too.
  [[nodiscard]] std::uint64_t upstream_calls() const;

 private:
  struct Hooks;
  void destroy() noexcept;

  std::unique_ptr<Hooks> hooks_;
  unsigned index_ = 0;  ///< jemalloc's number for the arena
};

}  // namespace weir
