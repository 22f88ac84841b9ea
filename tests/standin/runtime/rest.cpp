// What the runtime has and the stand-in does not imitate: it says so. No header of CUDA here: the
// functions take whatever they are called with. Weak, so that the ones which are imitated take
// their place. The list is made of <cuda_runtime_api.h>.

extern "C" int weir_standin_runtime_rest();

#define REST(name) \
  extern "C" __attribute__((weak)) int name() { return weir_standin_runtime_rest(); }
#include "standin_runtime_rest.inc"
#undef REST
