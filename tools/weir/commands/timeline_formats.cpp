#include "tools/weir/commands/timeline_formats.hpp"

#include <nlohmann/json.hpp>

#include "allocator/base/setting.hpp"
#include "tools/program/json_text.hpp"
#include "tools/timeline/analysis/report/report.hpp"
#include "tools/timeline/chrome/gzip.hpp"
#include "tools/timeline/chrome/writer.hpp"
#include "tools/timeline/files/write.hpp"
#include "tools/timeline/page/page.hpp"
#include "tools/timeline/perfetto/writer.hpp"
#include "tools/timeline/snapshot/writer.hpp"

namespace weir::cli {

TimelineFormat timeline_format(const std::string& option, const std::string& path) {
  if (path.ends_with(".json")) return {timeline::Format::kChrome, false};
  if (path.ends_with(".json.gz")) return {timeline::Format::kChrome, true};
  if (path.ends_with(".pftrace")) return {timeline::Format::kPerfetto, false};
  if (path.ends_with(".pickle")) return {timeline::Format::kSnapshot, false};
  refuse(option, path, "a name that ends in .json, .json.gz, .pftrace or .pickle");
}

TimelineFormat recording_format(const std::string& option, const std::string& path) {
  if (path.ends_with(".json") || path.ends_with(".json.gz") || path.ends_with(".pftrace")) {
    return timeline_format(option, path);
  }
  refuse(option, path, "a name that ends in .json, .json.gz or .pftrace");
}

void write_timeline_as(TimelineFormat format, const timeline::Timeline& timeline,
                       timeline::ByteSink& sink) {
  switch (format.format) {
    case timeline::Format::kChrome:
      if (format.packed) {
        timeline::GzipSink packed(sink);
        timeline::write_timeline(timeline, *timeline::make_chrome_writer(packed));
        packed.finish();
      } else {
        timeline::write_timeline(timeline, *timeline::make_chrome_writer(sink));
      }
      return;
    case timeline::Format::kPerfetto:
      timeline::write_timeline(timeline, *timeline::make_perfetto_writer(sink));
      return;
    case timeline::Format::kSnapshot:
      sink.append(timeline::to_snapshot(timeline));
      return;
  }
}

std::string timeline_page(const timeline::Timeline& timeline) {
  return timeline::make_page(timeline);
}

std::string timeline_text(const timeline::Timeline& timeline) {
  return timeline::report_text(timeline);
}

std::string timeline_json(const timeline::Timeline& timeline) {
  return json_text(timeline::report_json(timeline));
}

}  // namespace weir::cli
