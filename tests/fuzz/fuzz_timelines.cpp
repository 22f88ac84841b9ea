// libFuzzer's target: the readers of timelines. Whatever the bytes: a timeline in order, or a
// refusal of one line.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "allocator/base/error.hpp"
#include "fuzz.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/process_builder.hpp"

namespace weir::testing {
namespace {

void check(const timeline::Process& process) {
  for (std::size_t i = 0; i < process.records.size(); ++i) {
    const TimelineRecord& record = process.records[i];
    require(record.begin <= record.end);
    require(record.name < process.names.size() && record.site < process.names.size());
    require(i == 0 || process.records[i - 1].begin <= record.begin);
  }
}

void read(const std::string& path) {
  try {
    const timeline::ReadLimits limits{.max_bytes = 1U << 20U};
    for (const timeline::Process& process : timeline::read_chrome(path, limits).processes) {
      check(process);
    }
  } catch (const UsageError& refusal) {
    const std::string text = refusal.what();
    require(text.size() < 1000 && text.find('\n') == std::string::npos);
    require(text.starts_with(path));
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  static const int file = memfd_create("f", MFD_CLOEXEC);
  const auto size = static_cast<ssize_t>(bytes.size());
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes.data(), bytes.size(), 0) != size) return;
  read("/proc/self/fd/" + std::to_string(file));
}

}  // namespace weir::testing
