#pragma once

#include "scheduler/scheduler.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/checkpoint/checkpointer.hpp"

namespace weir {

/// Refuses a file of other settings or tensors than those of `run`, then fills the run's tensors
/// from it and waits until they are. Its position is the reader's: `number`, `text`. Throws
/// UsageError for a damaged file; then the tensors hold parts of it, and the run must not go on.
void resume(const CheckpointReader& file, Scheduler& scheduler, const CheckpointState& run);

}  // namespace weir
