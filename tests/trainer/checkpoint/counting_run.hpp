#pragma once

// A training whose tensors all hold the number of its batches: a checkpoint that mixes two batches
// shows.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "../../scheduler/rig.hpp"
#include "checkpoint_samples.hpp"
#include "trainer/checkpoint/checkpointer.hpp"

namespace weir::testing {

class CountingRun {
 public:
  /// Tensors of these many elements.
  CountingRun(Rig& rig, const std::vector<std::size_t>& sizes) : rig_(rig) {
    for (const std::size_t elements : sizes) {
      tensors_.push_back({"t" + std::to_string(tensors_.size()), rig->empty({elements})});
      rig->submit("begin", {.writes = {tensors_.back().tensor}}, fill(0));
    }
  }

  /// One batch: an intermediate, then every tensor plus one.
  void batch() {
    const Batch batch = rig_->begin_batch("train");
    const Tensor between = rig_->empty(shape_of(kBetween), "between");
    rig_->submit("between", {.writes = {between}}, nothing());
    for (const NamedTensor& named : tensors_) {
      rig_->submit("step", {.reads = {named.tensor}, .writes = {named.tensor}}, add(1));
    }
    ++done_;
  }
  /// Batches whose footprint the scheduler knows afterwards.
  void warm_up() {
    batch();
    batch();
    rig_->wait_all();
  }

  [[nodiscard]] std::uint64_t done() const { return done_; }
  [[nodiscard]] const std::vector<NamedTensor>& tensors() const { return tensors_; }
  [[nodiscard]] CheckpointState state() const {
    return {.settings = {{"run", "counting"}},
            .position = {{"batch", std::to_string(done_)}},
            .tensors = tensors_};
  }

  static constexpr Bytes kBetween = kib(64);  ///< of the intermediate, and of its block

 private:
  Rig& rig_;
  std::vector<NamedTensor> tensors_;
  std::uint64_t done_ = 0;
};

/// Returns the batch whose checkpoint the file is; fails the test if anything of it is another's.
inline std::uint64_t batch_in(const std::string& path) {
  const CheckpointReader reader("--resume", path);
  const std::uint64_t batch = reader.number("batch");
  for (const auto& elements : read_all(reader)) {
    EXPECT_EQ(std::ranges::count(elements, static_cast<float>(batch)), std::ssize(elements));
  }
  return batch;
}

}  // namespace weir::testing
