// Functions of the runtime without a simulation: they return an error. Includes no CUDA header: the
// functions accept any arguments. Weak, so that simulated ones replace them. The list is made from
// <cuda_runtime_api.h>.

extern "C" int weir_standin_runtime_rest();

#define REST(name) \
  extern "C" __attribute__((weak)) int name() { return weir_standin_runtime_rest(); }
#include "standin_runtime_rest.inc"
#undef REST
