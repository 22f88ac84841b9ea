// Opens devices by name.

#include <charconv>
#include <string>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device.hpp"

namespace weir {
namespace {

void require_at_most(Bytes memory, Bytes most, const std::string& whose) {
  if (memory <= most) return;
  throw UsageError("device memory " + format_bytes(memory) + " is not allowed: at most what " +
                   whose + " has, " + format_bytes(most));
}

}  // namespace

int cuda_ordinal(std::string_view name) noexcept {
  constexpr std::string_view kCuda = "cuda";
  if (name == kCuda) return 0;
  if (!name.starts_with("cuda:")) return -1;
  const std::string_view digits = name.substr(kCuda.size() + 1);
  int ordinal = -1;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, ordinal);
  // One spelling only: cuda:01 is not a second name of cuda:1.
  const bool plain = error == std::errc{} && stop == end && std::to_string(ordinal) == digits;
  return plain && ordinal >= 0 ? ordinal : -1;
}

DefaultDevice default_device() {
  CudaAnswer answer = find_cuda();
  if (answer.devices > 0) return {.name = "cuda", .why = std::move(answer.name)};
  return {.name = "cpu", .why = std::move(answer.why)};
}

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  if (name == "cpu") {
    require_at_most(options.memory, machine_memory(), "the machine");
    return Device(std::make_unique<CpuDevice>(options.memory.count != 0 ? options.memory
                                                                        : default_cpu_memory()));
  }
  const int ordinal = cuda_ordinal(name);
  if (ordinal < 0) {
    throw UsageError("device '" + std::string(name) +
                     "' is not known: cpu, cuda, cuda:N for GPU number N, or auto");
  }
  require_at_most(options.memory, cuda_memory(ordinal), "GPU " + std::to_string(ordinal));
  return Device(open_cuda_device(ordinal, options));
}

}  // namespace weir
