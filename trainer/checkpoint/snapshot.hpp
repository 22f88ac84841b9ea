#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"

namespace weir {

/// A tensor by the name of its section.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Returns their sections.
[[nodiscard]] std::vector<Section> sections_of(const std::vector<NamedTensor>& tensors);

/// What a run's tensors hold now, whatever is submitted later.
struct Snapshot {
  /// In the order of the sections. The first `held` are the run's own, for whose copies there was
  /// no room: nothing may be submitted that writes them before they are read.
  std::vector<Tensor> tensors;
  std::size_t held = 0;
};

/// Submits copies of the tensors within the device as one batch of the kind `checkpoint`, the last
/// tensors first. Copies as many as leave room in the budget for two batches of the kind `beside`,
/// so that the training never fails for them; none before the first such batch has ended. Waits for
/// admission only. Call it with no batch open on this thread.
[[nodiscard]] Snapshot take_snapshot(Scheduler& scheduler, const std::vector<NamedTensor>& tensors,
                                     std::string_view beside);

}  // namespace weir
