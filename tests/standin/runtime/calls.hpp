#pragma once

// The driver as the runtime reaches it: opened at the first use, with every function looked up
// through cuGetProcAddress.

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace weir::standin {

/// The functions for one kind of default stream.
struct Calls {
#define CALL(name) decltype(&::name) name = nullptr;
#include "tests/standin/runtime/calls.inc"
#undef CALL
};

/// The driver, or the reason why there is none.
struct Library {
  cudaError_t status = cudaSuccess;  ///< otherwise no driver can be used
  int version = 0;                   ///< 0: none at all
  Calls legacy;
  Calls per_thread;  ///< functions without such a variant are the same ones
  decltype(&::cuGetProcAddress) get = nullptr;
  CUfunction (*function_of)(const void* symbol) = nullptr;  ///< of the stand-in driver alone
  void (*refuse)(int code) = nullptr;                       ///< likewise
};

/// Opens the driver once. Thread-safe, also before constructors of static objects.
const Library& library();

}  // namespace weir::standin
