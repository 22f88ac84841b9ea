#include "trainer/run/recording.hpp"

#include <cstdio>
#include <utility>

#include "scheduler/device/device_kind.hpp"
#include "tools/program/table.hpp"
#include "tools/timeline/begin.hpp"
#include "tools/timeline/live/publisher.hpp"

namespace weir {
namespace {

// A bad file named by a flag is refused before anything runs, like other outputs. A variable may be
// set for many programs, and must not end any of them.
timeline::Recorder* begin(const TrainSettings& settings) {
  start_blas(settings.device.value);
  return timeline::record_program(
      settings.timeline, {.gpu = parse_device_id(settings.device.value).kind == DeviceKind::kCuda,
                          .required = settings.timeline.file.source.starts_with("--")});
}

}  // namespace

Recording::Recording(const TrainSettings& settings) : recorder_(begin(settings)) {}

std::optional<timeline::RecordingResult> Recording::end() noexcept {
  timeline::Recorder* const recorder = std::exchange(recorder_, nullptr);
  if (recorder == nullptr) return std::nullopt;
  return recorder->finish();
}

std::optional<timeline::RecordingResult> Recording::finish() {
  auto result = end();
  if (result) std::fprintf(stderr, "%s\n", describe(*result).c_str());
  return result;
}

NamedPath timeline_file(const TrainSettings& settings) {
  const Setting<std::string>& file = settings.timeline.file;
  if (file.value.empty()) return {};
  return {file.source, timeline::expand_name(file, process_environment())};
}

void publish(const TrainSettings& settings) {
  start_blas(settings.device.value);
  const Environment& environment = process_environment();
  timeline::Publisher* const publisher =
      timeline::Publisher::begin(timeline::publish_setting(environment).value, environment);
  if (publisher != nullptr) publisher->add_device(settings.device.value);
}

std::string describe(const timeline::RecordingResult& result) {
  std::string text = "timeline: " + (result.file.empty() ? "no file" : result.file) + ", " +
                     format_count(result.events, "event") + ", " + std::to_string(result.lost) +
                     " lost";
  if (!result.file.empty()) text += " (weir timeline report " + result.file + " -o report.html)";
  return text;
}

}  // namespace weir
