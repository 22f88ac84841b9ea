#pragma once

// What this machine's CUDA driver reports about its devices. Opened at run time: without a driver
// there are no devices.

#include <optional>
#include <string>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace weir::cli {

struct DeviceInfo {
  int number = 0;
  std::string name;
  Bytes total;
  std::optional<Bytes> free;  ///< none if no context could be created
  bool has_pages = true;      ///< virtual memory management
  bool exports_files = true;  ///< hands its memory to other processes as files
};

struct DriverInfo {
  std::string problem;      ///< why there are no devices; otherwise empty
  std::string file;         ///< the driver's library; empty: not found
  bool is_standin = false;  ///< the tests' stand-in (docs/standin.md), not NVIDIA's
  int error = 0;            ///< of cuInit; zero: none
  int version = 0;          ///< newest CUDA version that it supports: 13000 for 13.0; zero: unknown
  std::vector<DeviceInfo> devices;
};

/// Opens the driver, and briefly a context on each device.
[[nodiscard]] DriverInfo ask_driver();

/// Returns `13.0` for 13000.
[[nodiscard]] std::string format_version(int version);

}  // namespace weir::cli
