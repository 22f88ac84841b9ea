#include "trainer/run/start_blas.hpp"

#include "kernels/blas/blas.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {

void start_blas(const TrainSettings& settings) {
  if (!kind_of(parse_device_id(settings.device.value)).on_host) return;
  reserve_blas_memory();
  set_blas_threads(1);  // the bits of a product depend on the number of threads
}

}  // namespace weir
