#include "tools/weir/recordings/recordings.hpp"

#include <chrono>
#include <ctime>
#include <exception>
#include <set>
#include <system_error>

#include "allocator/base/log.hpp"
#include "allocator/base/output_place.hpp"
#include "tools/program/output_file.hpp"
#include "tools/timeline/files/formats.hpp"
#include "tools/timeline/page/page.hpp"
#include "tools/timeline/recorder/failure.hpp"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

bool is_digit(char each) { return each >= '0' && each <= '9'; }

/// Whether `name` is `pattern` with a number for each %p and %r, and % for %%.
bool matches(std::string_view name, std::string_view pattern) {
  while (!pattern.empty()) {
    const char what = pattern[0] == '%' && pattern.size() > 1 ? pattern[1] : '\0';
    if (what == 'p' || what == 'r') {
      pattern.remove_prefix(2);
      for (; !name.empty() && is_digit(name[0]);) {
        name.remove_prefix(1);
        if (matches(name, pattern)) return true;
      }
      return false;
    }
    if (name.empty() || name[0] != pattern[0]) return false;
    name.remove_prefix(1);
    pattern.remove_prefix(what == '%' ? 2 : 1);
  }
  return name.empty();
}

/// Returns the recordings of WEIR_TIMELINE=`pattern`. Follows links: failures lie beside the file.
std::set<std::string> find_recordings(const std::string& pattern) {
  std::set<std::string> found;
  if (pattern.empty()) return found;
  const fs::path named(pattern);
  std::string folder = named.has_parent_path() ? named.parent_path().string() : ".";
  for (std::size_t at = 0; (at = folder.find("%%", at)) != std::string::npos; ++at) {
    folder.erase(at, 1);
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (!is_recording_of(named.filename().string(), path.filename().string())) continue;
    found.insert(find_output(path.string()).path);
  }
  return found;
}

bool written_since(const fs::path& path, FileTime since) {
  std::error_code error;
  const FileTime written = fs::last_write_time(path, error);
  return !error && written >= since;
}

void make_page_of(const std::string& file) {
  try {
    const std::string page = timeline::failure_page(file);
    OutputFile output("page", page);
    output.commit(timeline::make_page(timeline::read_timeline(file)));
    log(LogLevel::kWarn, "what led to the out-of-memory: " + page);
  } catch (const std::exception& error) {
    log(LogLevel::kWarn,
        std::string("the page of an out-of-memory cannot be made: ") + error.what());
  }
}

}  // namespace

bool is_recording_of(std::string_view pattern, std::string_view name) {
  const auto format = timeline::find_format(pattern, timeline::FormatUse::kRecord);
  if (!format) return false;
  const std::string_view stem = pattern.substr(0, pattern.size() - format->suffix.size());
  return matches(name, pattern) ||
         matches(name, std::string(stem).append(".%p").append(format->suffix));
}

FileTime file_time_now() {
  timespec now{};
  (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return FileTime::clock::from_sys(std::chrono::sys_time<std::chrono::nanoseconds>(
      std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec)));
}

void make_failure_pages(const std::string& pattern, FileTime since) {
  for (const std::string& recording : find_recordings(pattern)) {
    for (std::size_t number = 1; number <= timeline::kMostFailures; ++number) {
      const std::string file = timeline::failure_file(recording, number);
      if (written_since(file, since)) make_page_of(file);
    }
  }
}

}  // namespace weir::cli
