#include "tools/timeline/files/read.hpp"

#include <new>

#include "allocator/base/error.hpp"
#include "allocator/log/allocation_log_reader.hpp"
#include "tools/timeline/chrome/input.hpp"
#include "tools/timeline/chrome/reader.hpp"
#include "tools/timeline/perfetto/reader.hpp"

namespace weir::timeline {
namespace {

enum class Content : std::uint8_t { kEmpty, kJson, kPerfetto, kAllocationLog, kPickle, kOther };

/// Returns the first bytes, unpacked.
std::string front_of(const std::string& path) {
  constexpr std::size_t kFront = 256;
  chrome::Input input(path, {});
  std::string front;
  while (front.size() < kFront && !input.at_end()) front += input.Take();
  return front;
}

/// Returns the index of the first byte at or after `place` that is not white space.
std::size_t skip_space(std::string_view text, std::size_t place) {
  const std::size_t found = text.find_first_not_of(" \t\r\n", place);
  return found == std::string_view::npos ? text.size() : found;
}

/// A Perfetto trace begins with the tag of its first packet, which is a newline. So the byte after
/// the bracket decides whether this is JSON.
bool is_json(std::string_view front) {
  const std::size_t bracket = skip_space(front, 0);
  if (bracket == front.size()) return false;
  const std::size_t next = skip_space(front, bracket + 1);
  const char follows = next < front.size() ? front[next] : '}';
  if (front[bracket] == '{') return follows == '"' || follows == '}';
  return front[bracket] == '[' && (follows == '{' || follows == ']' || follows == '}');
}

Content content_of(std::string_view front) {
  constexpr std::string_view kPickle = "\x80";
  if (front.empty()) return Content::kEmpty;
  if (is_allocation_log(front)) return Content::kAllocationLog;
  if (is_json(front)) return Content::kJson;
  if (front.starts_with('\n')) return Content::kPerfetto;
  if (front.starts_with(kPickle)) return Content::kPickle;
  return Content::kOther;
}

[[noreturn]] void refuse_content(const std::string& path, const char* what) {
  throw UsageError(path + ": no timeline: " + what +
                   "; allowed are Chrome trace JSON (.json, .json.gz) and Perfetto traces "
                   "(.pftrace)");
}

Timeline read(const std::string& path, const ReadLimits& limits) {
  switch (content_of(front_of(path))) {
    case Content::kJson:
      return read_chrome(path, limits);
    case Content::kPerfetto:
      return read_perfetto(path, limits);
    case Content::kEmpty:
      refuse_content(path, "it is empty");
    case Content::kAllocationLog:
      refuse_content(path, "it is an allocation log, which weir replay reads");
    case Content::kPickle:
      refuse_content(path, "it is a pickle, which only PyTorch's memory viewer reads");
    case Content::kOther:
      break;
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
