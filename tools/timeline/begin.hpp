#pragma once

// A recording as programs begin it: with what CUPTI says of a GPU, and with the page of an
// out-of-memory.

#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {

/// What the program has that can be recorded.
struct RecordingScope {
  bool gpu = false;       ///< it uses CUDA: CUPTI is asked what the GPU does
  bool required = false;  ///< without its file the program must not run: UsageError then
};

/// As begin_recording. Where the file cannot be written, one line says why, and null is returned
/// unless it is required. Where CUPTI cannot be had, one line says why and the rest is recorded. To
/// be called before the program's first work on a GPU.
[[nodiscard]] Recorder* record_program(const TimelineSettings& settings,
                                       const RecordingScope& scope);

}  // namespace weir::timeline
