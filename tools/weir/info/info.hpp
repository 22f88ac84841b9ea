#pragma once

// What `weir info` prints, made of what was found. Pure.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/preload/report/settings.hpp"
#include "tools/weir/info/driver.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli {

struct Info {
  DriverInfo driver;
  Setting<std::string> library;  ///< as locate_library has it
  preload::Settings settings;
  Setting<AllocatorMode> allocator;  ///< of `weir run`
  std::string allocator_line;        ///< as `weir run` says it at its start
};

/// For people.
[[nodiscard]] std::string info_text(const Info& info);
/// The same for programs.
[[nodiscard]] std::string info_json(const Info& info);

/// The table of the driver's functions that the library stands in front of. UsageError in a build
/// without the library.
[[nodiscard]] std::string hooks_text();

}  // namespace weir::cli
