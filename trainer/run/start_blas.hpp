#pragma once

#include "trainer/run/settings.hpp"

namespace weir {

/// Gives the BLAS its memory, if the run's device is on the host; a GPU does not need it. Call it
/// before the run starts a thread: where address space is short, a thread's first allocation may
/// take what was free when the BLAS looked, and OpenBLAS then tries again forever. Later calls do
/// nothing. Throws BlasMemoryError.
void start_blas(const TrainSettings& settings);

}  // namespace weir
