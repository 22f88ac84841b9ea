#pragma once

// Begins the recording of a program, with GPU activity from CUPTI and a file for each
// out-of-memory.

#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {

/// What to record of the program.
struct RecordingScope {
  bool gpu = false;       ///< it uses CUDA, so record GPU activity with CUPTI
  bool required = false;  ///< throw UsageError if the file cannot be written
};

/// Begins a recording like begin_recording. If the file cannot be written, logs one line and
/// returns null, unless the file is required. If CUPTI is unavailable, logs one line and records
/// the rest. Call before the program's first work on a GPU.
[[nodiscard]] Recorder* record_program(const TimelineSettings& settings,
                                       const RecordingScope& scope);

}  // namespace weir::timeline
