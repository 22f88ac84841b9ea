#pragma once

// The recording of this process: begun once, as the program or its environment asks for it, and
// ended with the program.

#include <functional>
#include <memory>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/activity.hpp"
#include "tools/timeline/recorder/recorder.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::timeline {

struct RecordingOptions {
  std::unique_ptr<ActivitySource> activity{};       ///< of the device; may be null
  FailurePage failure_page{};                       ///< for Recorder::note_failure; may be empty
  Environment environment = process_environment();  ///< has the rank
};

/// Begins a recording as `settings` say; it is finished when the program ends, or before. Returns
/// it, and null where the settings name no file. Where a recording is under way already, returns
/// that. UsageError for a file that cannot be written. Call it on one thread.
Recorder* begin_recording(const TimelineSettings& settings, RecordingOptions options = {});

/// The recording that was begun last in this process; null where none was, and in a forked child.
[[nodiscard]] Recorder* recording() noexcept;

/// What this process is, without times.
[[nodiscard]] ProcessInfo describe_process(const Environment& environment);

}  // namespace weir::timeline
