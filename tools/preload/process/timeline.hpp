#pragma once

#include "tools/preload/report/settings.hpp"

namespace weir::preload {

/// Begins the timeline that WEIR_TIMELINE asks for; it ends with the program. Nothing where none is
/// asked for, or the program began one already. UsageError.
void begin_timeline(const timeline::TimelineSettings& settings);
class Process;
/// Live views show the process's devices from now on. Once.
void show_devices(const Process& process);
/// Shows the program to `weir top` and lets `weir set` ask it, unless the settings say not to.
void begin_publishing(const Settings& settings) noexcept;
/// It uses this device, too. For calls from inside.
void publish_device(const Settings& settings, const std::string& name) noexcept;

}  // namespace weir::preload
