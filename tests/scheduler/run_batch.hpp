#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rig.hpp"

namespace weir::testing {

constexpr Bytes pages(std::uint64_t count) { return kib(4) * count; }

/// The pages of a batch's blocks, each a power of two, so that the batch holds their sum.
using Blocks = std::vector<std::uint64_t>;

inline Bytes sum_of(const Blocks& blocks) {
  Bytes sum;
  for (const std::uint64_t count : blocks) sum += pages(count);
  return sum;
}

/// A batch of a kind named after its sum: allocates all its blocks, on two streams in turn, and
/// frees them after `while_open`.
inline void run_batch(Rig& rig, const Blocks& blocks, const BatchOptions& options,
                      const std::function<void()>& while_open = {}) {
  const Batch batch = rig->begin_batch("of " + std::to_string(sum_of(blocks).count), options);
  std::vector<Tensor> tensors;
  for (const std::uint64_t count : blocks) {
    Tensor tensor = rig->empty(shape_of(pages(count)));
    if (tensors.empty()) {
      rig->submit("stage", {.writes = {tensor}, .stream = StreamRole::kCopyIn}, nothing());
    } else {
      rig->submit("use", {.reads = {tensors.back()}, .writes = {tensor}}, nothing());
    }
    tensors.push_back(std::move(tensor));
  }
  if (while_open) while_open();
}

}  // namespace weir::testing
