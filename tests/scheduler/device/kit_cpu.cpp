#include <cstring>

#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/kit.hpp"

namespace weir::testing {
namespace {

/// A closure runs late here as a whole, so its work may run at once.
class CpuKit final : public DeviceKit {
 public:
  [[nodiscard]] std::unique_ptr<DeviceBackend> open(Bytes memory) override {
    return std::make_unique<CpuDevice>(memory);
  }
  void step(Stream& /*stream*/, std::function<void()> step) override { step(); }
  void set_bytes(Stream& /*stream*/, void* to, int value, Bytes size) override {
    std::memset(to, value, size.count);
  }
};

}  // namespace

DeviceKit& kit() {
  static CpuKit kit;
  return kit;
}

}  // namespace weir::testing
