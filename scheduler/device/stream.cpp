#include "scheduler/device/stream.hpp"

#include <array>

#include "scheduler/device/serves_device.hpp"

namespace weir {

bool on_device_thread() noexcept { return ServesDevice::here(); }

std::string_view to_string(StreamRole role) noexcept {
  constexpr std::array<std::string_view, kStreamRoles> kNames{"compute", "compute-2", "copy-in",
                                                              "copy-out"};
  return kNames.at(index_of(role));
}

}  // namespace weir
