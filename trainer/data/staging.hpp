#pragma once

// Host buffers that batches are made in and copied to the device from. A buffer is free again once
// the device has passed the point of its copy, and never before.

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
  /// Buffers of `elements` floats each from `upstream`. It and `progress` must outlive the staging.
  Staging(Upstream& upstream, Progress& progress, std::size_t elements)
      : progress_(progress), elements_(elements), buffers_(upstream) {}

  /// A buffer that nothing uses. Where the upstream has no room for another one, waits for a copy
  /// out of one that was given back; OutOfMemory when none was.
  [[nodiscard]] float* acquire();
  /// The copy out of it is done when `copied` is passed.
  void give_back(float* buffer, Point copied);

  /// Host memory obtained from the upstream, now and at most.
  [[nodiscard]] Gauge memory() const { return buffers_.reserved(); }
  /// Calls that reached the upstream for memory.
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
