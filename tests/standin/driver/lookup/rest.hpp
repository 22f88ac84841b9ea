#pragma once

// The driver functions that <cuda.h> declares, simulated or not.

namespace weir::standin {

/// The exported function of this exact name; null if the toolkit's header has none.
void* rest_function(const char* name);

}  // namespace weir::standin
