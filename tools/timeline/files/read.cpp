#include "tools/timeline/files/read.hpp"

#include <new>
#include <string_view>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "tools/timeline/chrome/input.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline {
namespace {

/// Returns the first bytes, unpacked.
std::string front_of(const std::string& path) {
  constexpr std::size_t kFront = 256;
  chrome::Input input(path, {});
  std::string front;
  while (front.size() < kFront && !input.at_end()) front += input.Take();
  return front;
}

[[noreturn]] void refuse_content(const std::string& path, std::string_view what) {
  throw UsageError(path + ": no timeline: " + std::string(what) + "; allowed are " +
                   list_formats(FormatUse::kRead, "and"));
}

Timeline read(const std::string& path, const ReadLimits& limits) {
  const std::string front = front_of(path);
  if (front.empty()) refuse_content(path, "it is empty");
  if (is_allocation_log(front)) {
    refuse_content(path, "it is an allocation log, which weir replay reads");
  }
  for (const FileFormat& format : file_formats()) {
    if (!format.recognises(front)) continue;
    if (format.read == nullptr) refuse_content(path, format.why_not_read);
    return format.read(path, limits);
  }
  refuse_content(path, "its first bytes are of no known format");
}

}  // namespace

Timeline read_timeline(const std::string& path) { return read_timeline(path, {}); }

Timeline read_timeline(const std::string& path, const ReadLimits& limits) {
  if (path == "-") throw UsageError("-: a timeline is read from a file, not from standard input");
  try {
    return read(path, limits);
  } catch (const std::bad_alloc&) {
    throw UsageError(path + ": not enough memory to read it");
  }
}

}  // namespace weir::timeline
