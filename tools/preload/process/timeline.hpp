#pragma once

#include "tools/preload/report/settings.hpp"

namespace weir::preload {

/// Begins the timeline that WEIR_TIMELINE asks for; it ends with the program. Does nothing if none
/// is asked for or the program already began one. Throws UsageError.
void begin_timeline(const timeline::TimelineSettings& settings);
class Process;
/// Shows the process's devices in live views from now on. Call once.
void show_devices(const Process& process);
/// Shows the program to `weir top` and accepts `weir set`, unless the settings forbid it.
void begin_publishing(const Settings& settings) noexcept;
/// Publishes a device in use. For internal callers.
void publish_device(const Settings& settings, const std::string& name) noexcept;

}  // namespace weir::preload
