#pragma once

// The recording of this process. The program or its environment starts it; it ends with the
// program.

#include <semaphore.h>

#include <functional>
#include <memory>

#include "allocator/base/setting.hpp"
#include "tools/timeline/model/activity.hpp"
#include "tools/timeline/recorder/recorder.hpp"
#include "tools/timeline/recorder/settings.hpp"

namespace weir::timeline {

// Lets SIGUSR2 start and stop recording, in a program that does not use the signal itself.

/// Begins to handle SIGUSR2: counts it and posts `wake`, which must stay valid. Returns false and
/// changes nothing if the program handles or ignores the signal itself.
[[nodiscard]] bool take_toggle_signal(sem_t& wake) noexcept;
/// Returns how many signals have arrived since the last call.
[[nodiscard]] unsigned count_toggles() noexcept;
/// Restores the default action, unless the program has changed it or it is kept.
void leave_toggle_signal() noexcept;
/// Makes the signal harmless for good: when released, it is ignored instead of ending the process,
/// until taken again. A sender cannot know that the recording, or the program, has just ended.
void keep_toggle_signal() noexcept;
/// For the fork handler in the child: restores the default action there.
void leave_toggle_signal_to_parent() noexcept;

struct RecordingOptions {
  std::unique_ptr<ActivitySource> activity{};  ///< records the device's activity; may be null
  bool keeps_failures = false;  ///< Recorder::note_failure writes the last seconds to a file
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
