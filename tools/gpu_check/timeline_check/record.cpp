#include "tools/gpu_check/timeline_check/record.hpp"

#include <memory>
#include <utility>

#include "allocator/base/error.hpp"
#include "tools/timeline/cupti/library.hpp"
#include "tools/timeline/cupti/source.hpp"
#include "tools/timeline/files/read.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::gpu_check {
namespace {

namespace cupti = timeline::cupti;

/// Returns a started source of CUPTI's records, since it sees only streams made after its start.
/// Returns null if it cannot record; `recorded` then says why.
std::unique_ptr<timeline::ActivitySource> start_cupti(const Environment& environment,
                                                      RecordedWork& recorded) {
  const auto places = cupti::cupti_places(environment, cupti::loaded_runtimes());
  if (cupti::open_library(places, recorded.no_cupti) == nullptr) return nullptr;
  auto source = timeline::make_cupti_source(environment);
  recorded.refused = source->start();
  return recorded.refused.empty() ? std::move(source) : nullptr;
}

}  // namespace

RecordedWork record_work(const std::string& file, const Environment& environment,
                         const std::function<std::vector<Stretch>()>& work) {
  RecordedWork recorded;
  timeline::TimelineSettings settings;
  settings.file = {timeline::parse_timeline_file("FILE", file), "FILE"};
  timeline::RecordingOptions options;
  options.activity = start_cupti(environment, recorded);
  options.environment = environment;
  timeline::Recorder* const recorder = timeline::begin_recording(settings, std::move(options));
  if (recorder == nullptr) throw Error("no timeline is recorded");
  const std::vector<Stretch> launched = work();
  const timeline::RecordingResult result = recorder->finish();
  if (result.file.empty()) throw Error("there is no timeline: " + result.note);
  recorded.comparison = compare(timeline::read_timeline(result.file), launched);
  return recorded;
}

}  // namespace weir::gpu_check
