#pragma once

// Reusable host buffers for a device to copy from: a free list over an upstream.
//
// A GPU's upstream pins every page, which is slow, so returned buffers are reused. Sizes may
// differ: a request gets the smallest free buffer that is large enough. So no more buffers of a
// size or above exist than were in use at once. docs/performance.md compares this with a jemalloc
// arena.

#include <condition_variable>
#include <cstdint>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/statistics.hpp"

namespace weir {

/// Thread-safe.
class StagingBuffers {
 public:
  struct Buffer {
    void* pointer = nullptr;
    Bytes size;  ///< at least the requested size
    friend bool operator==(const Buffer&, const Buffer&) = default;
  };

  explicit StagingBuffers(Upstream& upstream) : upstream_(upstream) {}
  /// Returns all memory to the upstream, including buffers that are still in use.
  ~StagingBuffers();
  StagingBuffers(const StagingBuffers&) = delete;
  StagingBuffers& operator=(const StagingBuffers&) = delete;

  /// Returns a buffer of at least `size`, not zeroed. If the upstream has no room, first returns
  /// the free buffers, all too small, to it, and waits for those that other threads are returning.
  /// The pointer is null if that does not help.
  [[nodiscard]] Buffer allocate(Bytes size);
  /// Obtains `count` free buffers of `size` from the upstream, or as many as it has room for.
  void obtain(std::size_t count, Bytes size);
  void deallocate(Buffer buffer) noexcept;
  /// Returns the free buffers smaller than `size` to the upstream. False if there are none.
  bool release_below(Bytes size);

  /// Returns the bytes from the upstream, now and at most.
  [[nodiscard]] Gauge reserved() const;
  /// Returns all bytes that the upstream gave so far, also those that went back to it.
  [[nodiscard]] Bytes obtained() const;
  /// Returns how often the upstream was asked, including refused requests.
  [[nodiscard]] std::uint64_t upstream_calls() const;

 private:
  /// Takes the smallest free buffer of at least `size`. The pointer is null if there is none.
  [[nodiscard]] Buffer take_free(Bytes size);
  [[nodiscard]] Buffer grow(Bytes size);
  /// Waits until a release ends, if any is under way. Returns whether more than `ended` have.
  bool await_release(std::uint64_t ended);
  [[nodiscard]] std::uint64_t releases_ended() const;

  Upstream& upstream_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<Buffer> all_ WEIR_GUARDED_BY(mutex_);
  std::vector<Buffer> free_ WEIR_GUARDED_BY(mutex_);  ///< by size; its capacity covers all
  Gauge reserved_ WEIR_GUARDED_BY(mutex_);
  Bytes obtained_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t upstream_calls_ WEIR_GUARDED_BY(mutex_) = 0;
  std::uint64_t releasing_ WEIR_GUARDED_BY(mutex_) = 0;       ///< releases under way
  std::uint64_t releases_ended_ WEIR_GUARDED_BY(mutex_) = 0;  ///< releases that ended
  std::condition_variable_any released_;
};

}  // namespace weir
