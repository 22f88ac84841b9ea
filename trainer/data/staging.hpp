#pragma once

// Host buffers in which batches are built and from which they are copied to the device. A buffer
// becomes free only when the device has passed the point of its copy.

#include <cstdint>
#include <deque>
#include <optional>

#include "allocator/base/bytes.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/progress/progress.hpp"
#include "allocator/statistics.hpp"
#include "trainer/data/staging_buffers.hpp"

namespace weir {

/// Thread-safe.
class Staging {
 public:
  /// Gets buffers of `elements` floats each from `upstream`. `upstream` and `progress` must outlive
  /// this.
  Staging(Upstream& upstream, Progress& progress, std::size_t elements)
      : progress_(progress), elements_(elements), buffers_(upstream) {}

  /// Returns an unused buffer. If the upstream has no room, waits for a copy out of a returned
  /// buffer. Throws OutOfMemory if there is none.
  [[nodiscard]] float* acquire();
  /// Returns a buffer. The copy out of it is done when `copied` is passed.
  void give_back(float* buffer, Point copied);

  /// Returns the memory obtained from the upstream, now and at most.
  [[nodiscard]] Gauge memory() const { return buffers_.reserved(); }
  /// Returns how often the upstream was asked for memory.
  [[nodiscard]] std::uint64_t upstream_calls() const { return buffers_.upstream_calls(); }

 private:
  struct Returned {
    float* buffer;
    Point copied;
    friend bool operator==(const Returned&, const Returned&) = default;
  };
  [[nodiscard]] Bytes buffer_size() const noexcept { return {elements_ * sizeof(float)}; }
  void release_passed();
  [[nodiscard]] std::optional<Point> oldest_returned() const;

  Progress& progress_;
  const std::size_t elements_;
  StagingBuffers buffers_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::deque<Returned> returned_ WEIR_GUARDED_BY(mutex_);  ///< oldest first
};

}  // namespace weir
