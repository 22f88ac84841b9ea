// weir-gpu timeline: records known work and prints as JSON what the timeline contains of it. With
// `count`, prints how much of a device's activity a timeline contains.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "tools/gpu_check/command.hpp"
#include "tools/gpu_check/timeline_check/record.hpp"
#include "tools/gpu_check/timeline_check/work.hpp"
#include "tools/program/standard_streams.hpp"
#include "tools/timeline/files/read.hpp"

namespace weir::gpu_check {
namespace {

using Object = nlohmann::ordered_json;

Object json_of(const RecordedStretch& stretch) {
  return {{"name", stretch.launched.name},      {"operations", stretch.launched.operations},
          {"recorded", stretch.recorded},       {"joined", stretch.joined},
          {"timed", stretch.launched.is_timed}, {"event_ms", stretch.launched.event_ms},
          {"sum_ms", stretch.sum_ms},           {"span_ms", stretch.span_ms},
          {"in_order", stretch.in_order},       {"outside_us", stretch.outside_us}};
}

Object json_of(const RecordedWork& work) {
  Object stretches = Object::array();
  for (const RecordedStretch& one : work.comparison.stretches) stretches.push_back(json_of(one));
  return {{"no_cupti", work.no_cupti},
          {"refused", work.refused},
          {"complete", work.comparison.complete},
          {"lost", work.comparison.lost},
          {"strays", work.comparison.strays},
          {"stretches", std::move(stretches)}};
}

void print_json(const Object& object) { require_printed(print(object.dump(1) + "\n")); }

int count(const std::string& file) {
  const ActivityCounts counts = count_activity(timeline::read_timeline(file));
  print_json({{"kernels", counts.kernels},
              {"copies", counts.copies},
              {"lost", counts.lost},
              {"complete", counts.complete}});
  return 0;
}

}  // namespace

int run_timeline(int argc, char** argv) {
  const std::span<char* const> words(argv + 1, argv + argc);
  const std::string_view first = words.empty() ? "" : words.front();
  if (first == "count" && words.size() == 2) return count(words.back());
  const bool is_small = words.size() == 2 && std::string_view(words.back()) == "--small";
  if (first.empty() || first == "count" || first.starts_with('-') ||
      words.size() > (is_small ? 2 : 1)) {
    throw UsageError("timeline takes FILE [--small], or count FILE");
  }
  if (const std::string why = why_no_gpu(); !why.empty()) {
    std::fprintf(stderr, "%s: no GPU: %s\n", argv[0], why.c_str());
    return 2;
  }
  require_standard_output();
  const WorkSize size = is_small ? WorkSize::kSmall : WorkSize::kMeasured;
  print_json(json_of(
      record_work(std::string(first), process_environment(), [size] { return do_work(size); })));
  return 0;
}

}  // namespace weir::gpu_check
