#include "trainer/plain/plain.hpp"

#include "scheduler/device/device_kind.hpp"

namespace weir {

std::string why_no_plain_run(const TrainSettings& settings) {
  if (parse_device_id(settings.device.value).kind != DeviceKind::kCuda) return "it needs a GPU";
  if (settings.data != nullptr) return "it does not read a data set";
  if (settings.inputs.value == InputKind::kHost) {
    return "its inputs are drawn or made beforehand, not on the way";
  }
  return "";
}

}  // namespace weir
