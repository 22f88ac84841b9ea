#pragma once

// The timeline of one run, if its settings ask for one.

#include <optional>
#include <string>

#include "tools/timeline/recorder/recorder.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

/// Records during its lifetime.
class Recording {
 public:
  /// Begins to record, if a file is named. Throws UsageError if it cannot be written. Starts the
  /// BLAS first (start_blas).
  explicit Recording(const TrainSettings& settings);
  ~Recording() { (void)end(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Ends the recording and reports it on standard error. Does nothing if nothing is recorded.
  std::optional<timeline::RecordingResult> finish();
  /// Ends the recording silently.
  std::optional<timeline::RecordingResult> end() noexcept;

 private:
  timeline::Recorder* recorder_ = nullptr;
};

/// Returns the timeline's file; no path if none is recorded.
[[nodiscard]] NamedPath timeline_file(const TrainSettings& settings);

/// Shows the program and its device to `weir top`. Throws UsageError for a bad WEIR_PUBLISH. Starts
/// the BLAS first (start_blas).
void publish(const TrainSettings& settings);

/// Returns one line for people: the file, its events, lost events, and what to do with it. Errors
/// were logged when they happened.
[[nodiscard]] std::string describe(const timeline::RecordingResult& result);

}  // namespace weir
