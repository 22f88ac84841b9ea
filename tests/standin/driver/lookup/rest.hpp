#pragma once

// The driver functions that <cuda.h> declares, imitated or not.

namespace weir::standin {

/// The exported function of this exact name; null when the toolkit's header has none.
void* rest_function(const char* name);

}  // namespace weir::standin
