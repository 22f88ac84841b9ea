#include "tools/timeline/begin.hpp"

#include <memory>
#include <string>

#include "allocator/log.hpp"
#include "tools/timeline/cupti/source.hpp"
#include "tools/timeline/page/page.hpp"

namespace weir::timeline {
namespace {

/// Started here, unless only a part of the run is recorded: CUPTI sees streams and contexts that
/// are made after it began.
std::unique_ptr<ActivitySource> gpu_activity(const TimelineSettings& settings) {
  auto source = make_cupti_source();
  if (settings.batches.value) return source;
  const std::string line = source->start();
  if (line.empty()) return source;
  log(LogLevel::kWarn, "timeline: " + line);
  return nullptr;
}

}  // namespace

Recorder* record_program(const TimelineSettings& settings, const RecordingScope& scope) {
  if (settings.file.value.empty()) return nullptr;
  RecordingOptions options;
  if (scope.gpu) options.activity = gpu_activity(settings);
  options.failure_page = [](const Timeline& timeline) {
    return make_page(timeline, {.title = "The last seconds before memory ran out"});
  };
  return begin_recording(settings, std::move(options));
}

}  // namespace weir::timeline
