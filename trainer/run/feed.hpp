#pragma once

// Brings training batches onto the device: copied from a reader's host memory, or drawn there.

#include <cstdint>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/data/reader.hpp"
#include "trainer/model/operations.hpp"

namespace weir {

/// Batch by batch: call `next`, then inside the scheduler's batch `inputs`, then `targets`. One
/// thread at a time.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;

  /// Moves to the next batch. May wait for its source, never for the device.
  virtual void next() = 0;
  /// Submits the work that makes its inputs, [rows × inputs]. Throws OutOfMemory.
  [[nodiscard]] virtual Tensor inputs() = 0;
  /// The same for its targets, [rows × targets].
  [[nodiscard]] virtual Tensor targets() = 0;
};

class CopiedFeed final : public Feed {
 public:
  /// Both must outlive it.
  CopiedFeed(Scheduler& scheduler, Reader& reader) : scheduler_(scheduler), reader_(reader) {}

  void next() override { host_ = reader_.next(); }
  [[nodiscard]] Tensor inputs() override;
  [[nodiscard]] Tensor targets() override;
  [[nodiscard]] std::size_t rows() const noexcept { return host_.rows; }

 private:
  Scheduler& scheduler_;
  Reader& reader_;
  HostBatch host_;
};

/// Draws the batches of generated_source on the device's second compute stream, as the d2l
/// experiment does: the same numbers without copies.
class DrawnFeed final : public Feed {
 public:
  /// `operations` must outlive it.
  DrawnFeed(Operations& operations, const BatchShape& shape, std::uint64_t seed)
      : operations_(operations), shape_(shape), seed_(seed) {}

  void next() override { index_ = made_++; }
  [[nodiscard]] Tensor inputs() override;
  [[nodiscard]] Tensor targets() override;

 private:
  Operations& operations_;
  const BatchShape shape_;
  const std::uint64_t seed_;
  std::uint64_t made_ = 0;
  std::uint64_t index_ = 0;  ///< current batch
};

}  // namespace weir
