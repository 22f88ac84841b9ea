#pragma once

// Host buffers in which batches are built and from which they are copied to the device. A buffer
// becomes free only when the device has passed the point of its copy.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"

namespace weir {

/// Reusable host buffers: a free list over an upstream. A GPU's upstream pins every page, which is
/// slow, so returned buffers are reused. Sizes may differ: a request gets the smallest free buffer
/// that is large enough. So no more buffers of a size or above exist than were in use at once.
/// docs/performance.md compares this with a jemalloc arena. Thread-safe.
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

/// Such buffers, each of which is used again once its copy is done. Thread-safe.
class Staging {
 public:
  using Buffer = StagingBuffers::Buffer;

  /// Gets buffers from `upstream`. `upstream` and `progress` must outlive this.
  Staging(Upstream& upstream, Progress& progress) : progress_(progress), buffers_(upstream) {}

  /// Returns an unused buffer for `elements` floats or more. If the upstream has no room, waits for
  /// a copy out of a returned buffer. Throws OutOfMemory if there is none.
  [[nodiscard]] Buffer acquire(std::size_t elements);
  /// Obtains `count` unused buffers for `elements` floats, or as many as the upstream has room for:
  /// before work begins rather than in the middle of it.
  void obtain(std::size_t count, std::size_t elements) {
    buffers_.obtain(count, {elements * sizeof(float)});
  }
  /// Returns a buffer. The copy out of it is done when `copied` is passed. Points are of one
  /// stream, in its order.
  void give_back(Buffer buffer, Point copied);
  /// Returns unused buffers for fewer than `elements` floats to the upstream.
  void release_below(std::size_t elements);

  /// Returns the memory obtained from the upstream, now and at most.
  [[nodiscard]] Gauge memory() const { return buffers_.reserved(); }
  /// Returns all bytes that the upstream gave so far, also those that went back to it.
  [[nodiscard]] Bytes obtained() const { return buffers_.obtained(); }
  /// Returns how often the upstream was asked for memory.
  [[nodiscard]] std::uint64_t upstream_calls() const { return buffers_.upstream_calls(); }

 private:
  struct Returned {
    Buffer buffer;
    Point copied;
    friend bool operator==(const Returned&, const Returned&) = default;
  };
  void release_passed();
  [[nodiscard]] std::optional<Point> oldest_returned() const;

  Progress& progress_;
  StagingBuffers buffers_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::deque<Returned> returned_ WEIR_GUARDED_BY(mutex_);  ///< oldest first
};

/// What prepares a run's batches in host memory, from which they are copied to the device.
class StagedReader {
 public:
  StagedReader(const StagedReader&) = delete;
  StagedReader& operator=(const StagedReader&) = delete;
  virtual ~StagedReader() = default;

  [[nodiscard]] Bytes staging_memory() const { return staging_.memory().peak; }
  /// Returns all host memory that was obtained so far, and on a GPU pinned, also what was returned.
  [[nodiscard]] Bytes staging_obtained() const { return staging_.obtained(); }
  [[nodiscard]] std::uint64_t staging_upstream_calls() const { return staging_.upstream_calls(); }

 protected:
  explicit StagedReader(const DeviceMemory& staging)
      : staging_(staging.upstream, staging.progress) {}

  Staging staging_;
};

}  // namespace weir
