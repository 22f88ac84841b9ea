#pragma once

// Brings the packed batches of a reader onto the device, one copy for each, or keeps some there.

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/scheduler.hpp"
#include "trainer/model/sparse_operations.hpp"
#include "trainer/ranks/communicator.hpp"
#include "trainer/ranks/shards.hpp"
#include "trainer/sparse/sparse_reader.hpp"

namespace weir {

/// Batch by batch: call `next`, then inside the scheduler's batch `copy`. One thread at a time.
class WideFeed {
 public:
  /// `sharing`: ranks that share each batch's rows; null if none do. All must outlive it.
  WideFeed(Scheduler& scheduler, SparseReader& reader, SparseWidths widths,
           const Communicator* sharing = nullptr)
      : scheduler_(scheduler), reader_(reader), widths_(widths), sharing_(sharing) {}

  /// Copies the next `count` batches now, and hands these out in turn from then on, batch number
  /// `first` first. No batch is open. Throws OutOfMemory.
  void keep(std::uint64_t count, std::uint64_t first) {
    while (kept_.size() < count) {
      host_ = reader_.next();
      kept_.push_back(copy_in());
    }
    turn_ = first;
  }
  /// Moves to the next batch. May wait for the reader, never for the device.
  void next() {
    if (kept_.empty()) {
      host_ = reader_.next();
    } else {
      current_ = kept_[turn_++ % kept_.size()];
    }
  }
  /// Submits its copy, unless it is kept. Throws OutOfMemory.
  [[nodiscard]] PackedTensor copy() { return kept_.empty() ? copy_in() : current_; }
  /// Returns the rows of the batch, on all ranks that share it.
  [[nodiscard]] std::size_t rows() const noexcept {
    return kept_.empty() ? host_.sizes.rows : current_.sizes.rows;
  }
  /// Returns the bytes copied so far.
  [[nodiscard]] Bytes copied() const noexcept { return copied_; }

 private:
  [[nodiscard]] PackedTensor copy_in() {
    Tensor words = scheduler_.copy_in(borrowed(host_.words), {host_.words.size()}, "sparse batch");
    reader_.give_back(host_, scheduler_.written(words));
    copied_ += Bytes{host_.words.size_bytes()};
    PackedSizes sizes = host_.sizes;
    if (sharing_ != nullptr) {
      const Shard part = shard_of(sizes.rows, sharing_->rank(), sharing_->size());
      sizes.part_rows = part.count;
      sizes.part_first = part.first;
    }
    return {std::move(words), sizes, widths_};
  }

  Scheduler& scheduler_;
  SparseReader& reader_;
  const SparseWidths widths_;
  const Communicator* const sharing_;
  PackedBatch host_;
  std::vector<PackedTensor> kept_;
  PackedTensor current_;  ///< of `kept_`
  std::uint64_t turn_ = 0;
  Bytes copied_;
};

}  // namespace weir
