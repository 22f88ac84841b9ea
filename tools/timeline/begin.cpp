#include "tools/timeline/begin.hpp"

#include <memory>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/log.hpp"
#include "tools/timeline/cupti/source.hpp"

namespace weir::timeline {
namespace {

/// Starts CUPTI here unless only a part of the run is recorded, because CUPTI sees only streams and
/// contexts made after its start. Returns null with a `refusal` if it is not possible.
std::unique_ptr<ActivitySource> gpu_activity(const TimelineSettings& settings,
                                             std::string& refusal) {
  auto source = make_cupti_source();
  if (settings.batches.value) return source;
  refusal = source->start();
  return refusal.empty() ? std::move(source) : nullptr;
}

/// Returns null if the file cannot be written and is not required.
Recorder* begin_if_possible(const TimelineSettings& settings, const RecordingScope& scope,
                            RecordingOptions options) {
  try {
    return begin_recording(settings, std::move(options));
  } catch (const UsageError& error) {
    if (scope.required) throw;
    log(LogLevel::kWarn, std::string("no timeline is recorded: ") + error.what());
    return nullptr;
  }
}

}  // namespace

Recorder* record_program(const TimelineSettings& settings, const RecordingScope& scope) {
  if (settings.file.value.empty()) return nullptr;
  RecordingOptions options;
  std::string refusal;
  if (scope.gpu) options.activity = gpu_activity(settings, refusal);
  options.keeps_failures = true;
  Recorder* const recorder = begin_if_possible(settings, scope, std::move(options));
  // Logged only now: if the file cannot be written, that must be the only line.
  if (recorder != nullptr && !refusal.empty()) log(LogLevel::kWarn, "timeline: " + refusal);
  return recorder;
}

}  // namespace weir::timeline
