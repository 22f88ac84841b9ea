#pragma once

// A run's batches: a source makes batch number i, and a reader hands batches out. It prefetches
// into staging buffers on its own thread, or hands out batches made before the run, in turn.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/progress/progress.hpp"
#include "trainer/data/staging.hpp"

namespace weir {

struct BatchShape {
  std::size_t rows = 0;
  std::size_t inputs = 0;   ///< per row
  std::size_t targets = 0;  ///< per row
  /// Rows after which batches start over; the last batch before that has the rest. 0: never.
  std::size_t rows_in_all = 0;

  /// Returns the rows of batch number `index`.
  [[nodiscard]] constexpr std::size_t rows_of(std::uint64_t index) const noexcept {
    if (rows_in_all == 0) return rows;
    const std::size_t first = index % ((rows_in_all + rows - 1) / rows) * rows;
    return std::min(rows, rows_in_all - first);
  }
};

/// One batch in host memory: inputs [rows × inputs], targets [rows × targets], row-major.
struct HostBatch {
  std::span<const float> inputs;
  std::span<const float> targets;
  std::size_t rows = 0;
  Staging::Buffer buffer{};  ///< to give back; null for a batch made beforehand
};

/// Fills batch number `index`, as many rows as the spans hold; the same index gives the same batch.
/// One thread at a time calls it.
using BatchSource =
    std::function<void(std::uint64_t index, std::span<float> inputs, std::span<float> targets)>;

/// The d2l experiment's data: inputs N(0, 1) of the Philox stream generated_sequence(index),
/// targets kGeneratedTarget.
[[nodiscard]] BatchSource generated_source(std::uint64_t seed);

/// Above the model's streams.
[[nodiscard]] constexpr std::uint64_t generated_sequence(std::uint64_t index) noexcept {
  constexpr std::uint64_t kFirst = 1'000'000;
  return kFirst + index;
}
inline constexpr float kGeneratedTarget = 1;

class Reader final : public StagedReader {
 public:
  static constexpr std::size_t kPrefetch = 2;  ///< batches kept ready for the frontend

  /// With `made_beforehand` > 0, makes that many batches now and hands them out in turn; otherwise
  /// a thread prefetches. Buffers come from the host memory of `staging` and are reused after its
  /// progress. Both must outlive the reader, and the reader every copy from it.
  Reader(DeviceMemory staging, BatchShape shape, BatchSource source, std::uint64_t made_beforehand);
  ~Reader() override;

  /// Returns the next batch. Waits only for the reader's own thread, which does not wait while
  /// fewer than kPrefetch are ready. Rethrows the source's exception.
  [[nodiscard]] HostBatch next();
  /// Call when the device is done with the batch's memory once `copied` is passed.
  void give_back(const HostBatch& batch, Point copied);

 private:
  [[nodiscard]] HostBatch make(std::uint64_t index);
  void prefetch();

  const BatchShape shape_;
  const BatchSource source_;
  std::vector<HostBatch> made_;
  std::uint64_t handed_out_ = 0;  ///< of those made beforehand; only the frontend uses it

  Mutex mutex_{LockRank::kLeaf};
  std::deque<HostBatch> ready_ WEIR_GUARDED_BY(mutex_);
  std::exception_ptr failure_ WEIR_GUARDED_BY(mutex_);
  bool closing_ WEIR_GUARDED_BY(mutex_) = false;
  std::condition_variable_any changed_;
  std::thread thread_;
};

}  // namespace weir
