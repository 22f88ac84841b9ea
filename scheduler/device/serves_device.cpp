#include "scheduler/device/serves_device.hpp"

#include <utility>

namespace weir {
namespace {

thread_local bool serves_device = false;

}  // namespace

ServesDevice::ServesDevice() noexcept : before_(std::exchange(serves_device, true)) {}

ServesDevice::~ServesDevice() { serves_device = before_; }

bool ServesDevice::here() noexcept { return serves_device; }

}  // namespace weir
