#pragma once

// Host buffers in which batches are built and from which they are copied to the device. A buffer
// becomes free only when the device has passed the point of its copy.

#include <cstdint>
#include <deque>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"
#include "trainer/data/staging_buffers.hpp"

namespace weir {

/// Thread-safe.
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
