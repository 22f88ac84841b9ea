// The table of device kinds, and opening a device by its name.

#include "scheduler/device/device_kind.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

#include "allocator/base/error.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/cuda.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/serves_device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {
namespace {

std::unique_ptr<DeviceBackend> open_cpu(int /*ordinal*/, const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(options.memory.count != 0 ? options.memory
                                                               : default_cpu_memory());
}

constexpr std::array<KindOfDevice, 2> kKinds{{
    {.kind = DeviceKind::kCpu,
     .name = "cpu",
     .numbered = false,
     .on_host = true,
     .help = "cpu",
     .most_memory = [](int /*ordinal*/) { return machine_memory(); },
     .default_memory = [](int /*ordinal*/) { return default_cpu_memory(); },
     .owner = [](int /*ordinal*/) -> std::string { return "the machine"; },
     .open = open_cpu},
    {.kind = DeviceKind::kCuda,
     .name = "cuda",
     .numbered = true,
     .on_host = false,
     .help = "cuda, cuda:N for GPU number N",
     .most_memory = cuda_memory,
     .default_memory = cuda_memory,
     .owner = [](int ordinal) { return "GPU " + std::to_string(ordinal); },
     .open = open_cuda_device},
}};
static_assert([] {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds.at(i).kind != static_cast<DeviceKind>(i)) return false;
  }
  return true;
}());

/// Returns the number of the kind's device with this name.
std::optional<int> find_ordinal(const KindOfDevice& kind, std::string_view name) {
  if (!name.starts_with(kind.name)) return std::nullopt;
  name.remove_prefix(kind.name.size());
  if (name.empty()) return 0;
  if (!kind.numbered || name.front() != ':') return std::nullopt;
  const std::string_view digits = name.substr(1);
  int ordinal = -1;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, ordinal);
  // One spelling only: cuda:01 is not a second name of cuda:1.
  const bool plain = error == std::errc{} && stop == end && std::to_string(ordinal) == digits;
  if (!plain || ordinal < 0) return std::nullopt;
  return ordinal;
}

}  // namespace

std::span<const KindOfDevice> kinds_of_device() noexcept { return kKinds; }

const KindOfDevice& kind_of(DeviceId device) noexcept {
  return kKinds.at(static_cast<std::size_t>(device.kind));
}

std::optional<DeviceId> find_device(std::string_view name) noexcept {
  for (const KindOfDevice& kind : kKinds) {
    if (const auto ordinal = find_ordinal(kind, name)) return DeviceId{kind.kind, *ordinal};
  }
  return std::nullopt;
}

DeviceId parse_device_id(std::string_view name) {
  if (const auto device = find_device(name)) return *device;
  throw UsageError("device '" + std::string(name) + "' is not known: " + allowed_devices());
}

void require_memory(DeviceId device, Bytes memory) {
  const KindOfDevice& kind = kind_of(device);
  const Bytes most = kind.most_memory(device.ordinal);
  if (memory <= most) return;
  throw UsageError("device memory " + format_bytes(memory) + " is not allowed: at most what " +
                   kind.owner(device.ordinal) + " has, " + format_bytes(most));
}

std::string allowed_devices() {
  std::string text;
  for (const KindOfDevice& kind : kKinds) text.append(kind.help).append(", ");
  return text + "or auto";
}

Device open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "auto") return open_device(default_device().name, options);
  const DeviceId id = parse_device_id(name);
  require_memory(id, options.memory);
  return Device(kind_of(id).open(id.ordinal, options));
}

bool on_device_thread() noexcept { return ServesDevice::here(); }

DefaultDevice default_device() {
  CudaAnswer answer = find_cuda();
  if (answer.devices > 0) return {.name = "cuda", .why = std::move(answer.name)};
  return {.name = "cpu", .why = std::move(answer.why)};
}

}  // namespace weir
