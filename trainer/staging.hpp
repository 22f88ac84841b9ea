#pragma once

// Host buffers that batches are made in and copied to the device from. A buffer is used again once
// the device has passed the point of its copy; only when none has come back is another one made.

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/bytes.hpp"
#include "allocator/mutex.hpp"
#include "allocator/progress.hpp"
#include "allocator/statistics.hpp"

namespace weir {

class Staging {
 public:
  /// Buffers of `elements` floats each. `progress` must outlive it.
  Staging(Progress& progress, std::size_t elements) : progress_(progress), elements_(elements) {}

  /// A buffer that nothing uses any more, or a new one.
  [[nodiscard]] float* acquire();
  /// The copy out of it is done when `copied` is passed.
  void give_back(float* buffer, Point copied);

  /// Host memory in buffers, now and at most. Buffers are kept to the end.
  [[nodiscard]] Gauge memory() const;

 private:
  struct Returned {
    float* buffer;
    Point copied;
  };

  Progress& progress_;
  const std::size_t elements_;
  mutable Mutex mutex_{LockRank::kLeaf};
  std::vector<std::unique_ptr<float[]>> buffers_ WEIR_GUARDED_BY(mutex_);
  std::vector<Returned> returned_ WEIR_GUARDED_BY(mutex_);  ///< oldest first
};

}  // namespace weir
