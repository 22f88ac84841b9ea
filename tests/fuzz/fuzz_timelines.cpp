// libFuzzer's target: the readers of timelines. Whatever the bytes: a timeline in order, or a
// refusal of one line.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "allocator/base/error.hpp"
#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/chrome/process_builder.hpp"

namespace weir::testing {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

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
}  // namespace weir::testing

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("f", MFD_CLOEXEC);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  weir::testing::read("/proc/self/fd/" + std::to_string(file));
  return 0;
}
