#pragma once

// The timeline of a program with libweir.so swapped in, and its place in live views.

#include <string>

#include "tools/preload/settings/settings.hpp"

namespace weir::timeline {
class Recorder;
}  // namespace weir::timeline

namespace weir::preload {

class Process;

/// Returns the recording, begun now or earlier; null if no file is named.
timeline::Recorder* begin_process_recording(const timeline::TimelineSettings& settings);
/// Begins the timeline that WEIR_TIMELINE asks for; it ends with the program. Does nothing if none
/// is asked for or the program already began one. Throws UsageError.
void begin_timeline(const timeline::TimelineSettings& settings);
/// Shows the process's devices in live views from now on. Call once.
void show_devices(const Process& process);
/// Shows the program to `weir top` and accepts `weir set`, unless the settings forbid it.
void begin_publishing(const Settings& settings) noexcept;
/// Publishes a device in use. For internal callers.
void publish_device(const Settings& settings, const std::string& name) noexcept;

}  // namespace weir::preload
