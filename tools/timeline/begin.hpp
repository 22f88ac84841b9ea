#pragma once

// A recording as programs begin it: with what CUPTI says of a GPU, and with the page of an
// out-of-memory.

#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {

/// What the program has that can be recorded.
struct RecordingScope {
  bool gpu = false;  ///< it uses CUDA: CUPTI is asked what the GPU does
};

/// As begin_recording. Where CUPTI cannot be had, one line says why and the rest is recorded. To be
/// called before the program's first work on a GPU.
[[nodiscard]] Recorder* record_program(const TimelineSettings& settings,
                                       const RecordingScope& scope);

}  // namespace weir::timeline
