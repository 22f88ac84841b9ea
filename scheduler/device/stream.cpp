#include "scheduler/device/stream.hpp"

#include <array>
#include <utility>

#include "scheduler/device/serves_device.hpp"

namespace weir {
namespace {

thread_local bool serves_device = false;

}  // namespace

ServesDevice::ServesDevice() noexcept : before_(std::exchange(serves_device, true)) {}

ServesDevice::~ServesDevice() { serves_device = before_; }

bool on_device_thread() noexcept { return serves_device; }

std::string_view to_string(StreamRole role) noexcept {
  constexpr std::array<std::string_view, kStreamRoles> kNames{"compute", "compute-2", "copy-in",
                                                              "copy-out"};
  return kNames.at(index_of(role));
}

}  // namespace weir
