// libFuzzer's target: the reader of .pftrace files. Whatever the bytes: a timeline in order, or a
// refusal of one line.

#include <algorithm>
#include <string>
#include <string_view>

#include "allocator/base/error.hpp"
#include "fuzz.hpp"
#include "tools/timeline/perfetto/perfetto.hpp"

namespace weir::testing {
namespace {

constexpr timeline::ReadLimits kLimits{
    .max_records = 20'000, .max_processes = 8, .max_names = 1'000};

void check(const timeline::Process& process) {
  require(process.records.size() <= kLimits.max_records);
  require(process.names.size() <= kLimits.max_names + 1);
  for (std::size_t i = 0; i < process.records.size(); ++i) {
    const TimelineRecord& record = process.records[i];
    require(static_cast<std::size_t>(record.kind) < kTimelineKinds);
    require(record.begin <= record.end && record.reserved == 0);
    require(record.name < process.names.size() && record.site < process.names.size());
    require(i == 0 || process.records[i - 1].begin <= record.begin);
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  (void)timeline::perfetto::recognises_ours(bytes.substr(0, 64));
  try {
    for (const timeline::Process& process :
         timeline::read_perfetto_bytes(bytes, "f", kLimits).processes) {
      check(process);
    }
  } catch (const UsageError& refusal) {
    const std::string_view text = refusal.what();
    require(text.size() < 1000 && text.find('\n') == std::string_view::npos);
    require(text.starts_with("f: "));
  }
}

}  // namespace weir::testing
