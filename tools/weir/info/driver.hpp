#pragma once

// What the CUDA driver of this machine says of its devices. It is opened at run time: a machine
// without one is a machine without devices.

#include <optional>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::cli {

struct DeviceInfo {
  int number = 0;
  std::string name;
  Bytes total;
  std::optional<Bytes> free;  ///< nothing where no context could be made to ask in
};

struct DriverInfo {
  std::string problem;  ///< why there are no devices; empty where there are
  int version = 0;      ///< of CUDA, the newest that it serves: 13000 for 13.0; zero: not known
  std::vector<DeviceInfo> devices;
};

/// Opens the driver, and a context on each device for a moment.
[[nodiscard]] DriverInfo ask_driver();

/// `13.0`.
[[nodiscard]] std::string format_version(int version);

}  // namespace weir::cli
