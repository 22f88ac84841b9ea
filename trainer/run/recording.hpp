#pragma once

// The timeline of one run, where its settings ask for one.

#include <optional>
#include <string>

#include "tools/timeline/recorder/recorder.hpp"
#include "trainer/run/settings.hpp"

namespace weir {

/// Records from its construction to its end.
class Recording {
 public:
  /// Begins. Records nothing where no file is named. UsageError for one that cannot be written.
  explicit Recording(const TrainSettings& settings);
  ~Recording() { (void)end(); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Ends it, and says on standard error how it went. Nothing where nothing is recorded.
  std::optional<timeline::RecordingResult> finish();
  /// Ends it, and says nothing.
  std::optional<timeline::RecordingResult> end() noexcept;

 private:
  timeline::Recorder* recorder_ = nullptr;
};

/// Shows the program, and the device that it uses, to `weir top`. UsageError for a bad
/// WEIR_PUBLISH.
void publish(const TrainSettings& settings);

/// One line for people: the file, its events, those lost, and what to do with it.
/// What went wrong was logged when it did.
[[nodiscard]] std::string describe(const timeline::RecordingResult& result);

}  // namespace weir
