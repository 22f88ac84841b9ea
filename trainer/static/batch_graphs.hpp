#pragma once

// Captures a batch's work on a GPU once, and launches what was captured from then on.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// What is fixed in captured work: with the same key the same graph is right.
struct GraphKey {
  std::uint64_t plan = 0;              ///< the operations
  std::vector<const void*> addresses;  ///< of their tensors
  std::vector<double> constants;       ///< of their closures
  friend bool operator==(const GraphKey&, const GraphKey&) = default;
};

class BatchGraphs {
 public:
  /// So many graphs are kept, those used last: of four shapes with two places for inputs each.
  static constexpr std::size_t kKept = 8;

  BatchGraphs() = default;
  BatchGraphs(const BatchGraphs&) = delete;
  BatchGraphs& operator=(const BatchGraphs&) = delete;
  virtual ~BatchGraphs() = default;

  /// Launches the graph of this key on `stream`. If there is none, calls `work`, which must only
  /// enqueue kernels and copies on `stream`, and captures it. Returns what must live until the
  /// stream is done with it. Call inside a submitted closure, one at a time. Throws CudaError, or
  /// what `work` throws; then nothing was launched.
  [[nodiscard]] virtual std::shared_ptr<const void> launch(Stream& stream, GraphKey&& key,
                                                           const std::function<void()>& work) = 0;
  /// Returns the number of captures so far. Any thread.
  [[nodiscard]] virtual std::uint64_t captures() const noexcept = 0;
};

/// Returns null for a device without graphs, whose batches are replayed as they are. Throws
/// UsageError for a device that open_device does not know.
[[nodiscard]] std::shared_ptr<BatchGraphs> make_batch_graphs(const Device& device);

/// Of GPU number `ordinal`. Throws UsageError if this build has no CUDA.
[[nodiscard]] std::shared_ptr<BatchGraphs> make_cuda_graphs(int ordinal);

}  // namespace weir
