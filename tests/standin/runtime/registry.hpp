#pragma once

// The kernels and variables that nvcc's code registers when the program starts.

#include <string>

#include "tests/standin/runtime/calls.hpp"

namespace weir::standin {

/// The driver's function for the kernel with this address in the host's code: by the name that nvcc
/// registered, or as the test registered it with the driver. Null if there is neither.
CUfunction function_of(const void* symbol);

}  // namespace weir::standin
