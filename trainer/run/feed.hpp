#pragma once

// Brings training batches onto the device: copied from a reader's host memory, or drawn there. Into
// new tensors each time, or, for static memory, into two places of each shape in turn: one is
// filled while the device computes with the other.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

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

/// Where batches are brought.
enum class FeedPlaces : std::uint8_t { kNew, kFixed };

/// Two places for the inputs and the targets of batches with the same number of rows, for so many
/// numbers of rows as static memory knows plans.
class FixedPlaces {
 public:
  struct Place {
    Tensor inputs;
    Tensor targets;
  };
  /// Returns the place for the next batch of these shapes. Under `backstop`, which holds back
  /// where memory is short, waits for the last copy to it. That copy waited for the batch that had
  /// used the place before, so the host is at most four batches ahead.
  [[nodiscard]] const Place& next(Scheduler& scheduler, const Shape& inputs, const Shape& targets);

 private:
  struct Pair {
    std::array<Place, 2> places;
    std::size_t next = 0;
  };
  std::vector<Pair> pairs_;  ///< used last first
};

class CopiedFeed final : public Feed {
 public:
  /// Both must outlive it.
  CopiedFeed(Scheduler& scheduler, Reader& reader, FeedPlaces places = FeedPlaces::kNew)
      : scheduler_(scheduler), reader_(reader), places_(places) {}

  void next() override;
  [[nodiscard]] Tensor inputs() override;
  [[nodiscard]] Tensor targets() override;
  [[nodiscard]] std::size_t rows() const noexcept { return host_.rows; }

 private:
  [[nodiscard]] Tensor copy(std::span<const float> host, const Tensor& fixed,
                            std::string_view label);
  [[nodiscard]] Shape shape_of(std::span<const float> host) const {
    return {host_.rows, host.size() / host_.rows};
  }

  Scheduler& scheduler_;
  Reader& reader_;
  const FeedPlaces places_;
  HostBatch host_;
  FixedPlaces fixed_;
  FixedPlaces::Place place_;  ///< of the current batch; empty for new tensors
};

/// Draws the batches of generated_source on the device's second compute stream, as the d2l
/// experiment does: the same numbers without copies.
class DrawnFeed final : public Feed {
 public:
  /// `operations` must outlive it.
  DrawnFeed(Operations& operations, const BatchShape& shape, std::uint64_t seed,
            FeedPlaces places = FeedPlaces::kNew)
      : operations_(operations), shape_(shape), seed_(seed), places_(places) {}

  void next() override;
  [[nodiscard]] Tensor inputs() override;
  [[nodiscard]] Tensor targets() override;

 private:
  Operations& operations_;
  const BatchShape shape_;
  const std::uint64_t seed_;
  const FeedPlaces places_;
  std::uint64_t made_ = 0;
  std::uint64_t index_ = 0;  ///< current batch
  FixedPlaces fixed_;
  FixedPlaces::Place place_;  ///< of the current batch; empty for new tensors
};

}  // namespace weir
