#include "tools/weir/doctor/finding.hpp"

namespace weir::cli::doctor {

std::string_view to_string(State state) noexcept {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kWarn:
      return "warn";
    case State::kFails:
      break;
  }
  return "fails";
}

std::string_view to_string(Group group) noexcept {
  switch (group) {
    case Group::kSystem:
      return "system";
    case Group::kDriver:
      return "driver";
    case Group::kLibrary:
      return "library";
    case Group::kPython:
      return "python";
    case Group::kSettings:
      return "settings";
    case Group::kLimits:
      return "limits";
    case Group::kEnvironment:
      break;
  }
  return "environment";
}

std::string_view to_string(Use use) noexcept {
  switch (use) {
    case Use::kRun:
      return "run";
    case Use::kPlug:
      return "plug";
    case Use::kTrainGpu:
      return "train-gpu";
    case Use::kTrainCpu:
      return "train-cpu";
    case Use::kDeviceWork:
      return "device-work";
    case Use::kLive:
      return "live";
    case Use::kShare:
      break;
  }
  return "share";
}

std::string_view described(Use use) noexcept {
  switch (use) {
    case Use::kRun:
      return "GPU programs under weir run";
    case Use::kPlug:
      return "PyTorch's plug";
    case Use::kTrainGpu:
      return "weir-train on a GPU";
    case Use::kTrainCpu:
      return "weir-train on the cpu";
    case Use::kDeviceWork:
      return "the device's work in timelines";
    case Use::kLive:
      return "weir ps, top and set";
    case Use::kShare:
      break;
  }
  return "a budget shared by processes";
}

}  // namespace weir::cli::doctor
