#pragma once

// The recording of this process. The program or its environment starts it; it ends with the
// program.

#include <functional>
#include <memory>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/activity.hpp"
#include "tools/timeline/recorder/recorder.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::timeline {

struct RecordingOptions {
  std::unique_ptr<ActivitySource> activity{};       ///< records the device's activity; may be null
  FailurePage failure_page{};                       ///< for Recorder::note_failure; may be empty
  Environment environment = process_environment();  ///< contains the rank
};

/// Begins a recording with `settings`. It ends with the program, or earlier. Returns null if the
/// settings name no file, and the current recording if there is one. Throws UsageError if the file
/// cannot be written. Call from one thread.
Recorder* begin_recording(const TimelineSettings& settings, RecordingOptions options = {});

/// Returns the recording that this process began last; null if there is none, and in a forked
/// child.
[[nodiscard]] Recorder* recording() noexcept;

/// Describes this process, without times.
[[nodiscard]] ProcessInfo describe_process(const Environment& environment);

}  // namespace weir::timeline
