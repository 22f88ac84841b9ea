#pragma once

// Formats what `weir info` found. Pure.

#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "tools/preload/settings/settings.hpp"
#include "tools/weir/info/driver.hpp"
#include "tools/weir/run/framework_allocator.hpp"

namespace weir::cli {

struct Info {
  DriverInfo driver;
  Setting<std::string> library;  ///< from locate_library
  preload::Settings settings;
  Setting<AllocatorMode> allocator;  ///< of `weir run`
  std::string allocator_line;        ///< the line that `weir run` prints at its start
};

/// Returns the text for people. Its tables fit 100 columns, unless `wide`, which cuts nothing.
[[nodiscard]] std::string info_text(const Info& info, bool wide = false);
/// Returns the same as JSON.
[[nodiscard]] std::string info_json(const Info& info);

/// Returns the table of hooked driver functions. Throws UsageError in a build without the library.
[[nodiscard]] std::string hooks_text(bool wide);

}  // namespace weir::cli
