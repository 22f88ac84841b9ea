#include "scheduler/device/device_cuda.hpp"

#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device_kind.hpp"

namespace weir {
namespace {

constexpr const char* kOrCpu = ", or use the device cpu";

/// Formats 13000 as 13.0.
std::string format_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Explains why the runtime finds no GPU, and what to do.
std::string explain(cudaError_t code) {
  if (code == cudaErrorNoDevice) return std::string("the driver sees no GPU: plug one in") + kOrCpu;
  if (code != cudaErrorInsufficientDriver) {
    return "the GPU does not answer (" + describe_cuda_error(code) + "): see what nvidia-smi says" +
           kOrCpu;
  }
  int driver = 0;
  (void)take_cuda_error(cudaDriverGetVersion(&driver));
  if (driver == 0) {
    return std::string("there is no NVIDIA driver (libcuda.so.1): install one") + kOrCpu;
  }
  return "the NVIDIA driver is too old: it serves CUDA " + format_version(driver) +
         ", and this build needs " + format_version(CUDART_VERSION) +
         ": update the driver, build with an older toolkit" + kOrCpu;
}

/// Returns the number of GPUs; if none, sets `why`.
int count_devices(std::string& why) {
  int count = 0;
  const cudaError_t code = take_cuda_error(cudaGetDeviceCount(&count));
  if (code == cudaSuccess && count > 0) return count;
  why = explain(code == cudaSuccess ? cudaErrorNoDevice : code);
  return 0;
}

void require_device(int ordinal) {
  std::string why;
  const int count = count_devices(why);
  if (count == 0) throw UsageError("device cuda:" + std::to_string(ordinal) + ": " + why);
  if (ordinal < count) return;
  throw UsageError("device cuda:" + std::to_string(ordinal) + " does not exist: " +
                   (count == 1 ? "the one GPU here is cuda:0"
                               : "there are cuda:0 to cuda:" + std::to_string(count - 1)));
}

/// Turns the error of an unusable GPU (full, in another mode) into one line for the user, who can
/// mend it.
template <typename Call>
auto require_usable(int ordinal, Call call) {
  require_device(ordinal);
  try {
    return call();
  } catch (const CudaError& error) {
    const bool full = error.code() == cudaErrorMemoryAllocation;
    throw UsageError("device cuda:" + std::to_string(ordinal) + " cannot be used: " + error.what() +
                     (full ? ": the GPU is full: stop other programs on it, or use another GPU"
                           : ": see what nvidia-smi says") +
                     kOrCpu);
  }
}

}  // namespace

CudaAnswer find_cuda() {
  CudaAnswer answer;
  answer.devices = count_devices(answer.why);
  if (answer.devices == 0) return answer;
  cudaDeviceProp properties;
  const cudaError_t code = take_cuda_error(cudaGetDeviceProperties(&properties, 0));
  if (code == cudaSuccess) {
    answer.name = properties.name;
  } else {
    answer = {.why = explain(code)};
  }
  return answer;
}

Bytes cuda_memory(int ordinal) {
  return require_usable(ordinal, [ordinal] { return cuda_memory_info(ordinal).total; });
}

std::unique_ptr<DeviceBackend> open_cuda_device(int ordinal, const DeviceOptions& options) {
  return require_usable(ordinal,
                        [&] { return std::make_unique<CudaDevice>(ordinal, options.memory); });
}

Device open_cuda_device(int ordinal, const CudaUserStreams& streams, const DeviceOptions& options) {
  return Device(require_usable(ordinal, [&] {
    require_memory({.kind = DeviceKind::kCuda, .ordinal = ordinal}, options.memory);
    return std::make_unique<CudaDevice>(ordinal, options.memory, streams);
  }));
}

CudaDevice::CudaDevice(int ordinal, Bytes memory, const CudaUserStreams& streams)
    : ordinal_(ordinal),
      upstream_(ordinal, memory),
      host_(ordinal, default_host_memory()),
      progress_(ordinal) {
  require_allowed(streams, ordinal);
  for (const StreamRole role : kAllRoles) {
    streams_.at(index_of(role)) =
        std::make_unique<CudaStream>(ordinal, streams.of(role), role, progress_);
  }
  enlist();
}

void CudaDevice::add_figures(LiveFigures& figures) const {
  figures.knows_busy = true;
  figures.busy += busy(StreamRole::kCompute);
}

bool CudaDevice::copies_late(const void* host) const {
  const CudaScope scope(ordinal_);
  cudaPointerAttributes attributes{};
  const cudaError_t code = take_cuda_error(cudaPointerGetAttributes(&attributes, host));
  return code == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

}  // namespace weir
