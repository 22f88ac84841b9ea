#pragma once

// Timelines to bytes and back.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tools/timeline/chrome/chrome.hpp"
#include "tools/timeline/files/formats.hpp"

namespace weir::timeline::testing {

struct StringSink final : ByteSink {
  void append(std::string_view bytes) noexcept override { text += bytes; }
  std::string text;
};

/// Writes all of it to one file, a flush at a time as a recorder does.
inline void write_in_flushes(const std::vector<Process>& processes, Writer& writer) {
  constexpr std::size_t kOfAFlush = 100;
  for (const Process& process : processes) {
    writer.begin(process.info);
    const ProcessNames names(process);
    for (std::span<const TimelineRecord> rest(process.records); !rest.empty();) {
      const std::size_t count = std::min(kOfAFlush, rest.size());
      writer.write(rest.first(count), names);
      writer.flush();
      rest = rest.subspan(count);
    }
    writer.end_process(process.complete ? Writer::End::kComplete : Writer::End::kCut, process.lost);
  }
  writer.finish(0);
}

inline std::string to_chrome(const Timeline& timeline) {
  StringSink sink;
  write_timeline(timeline, *make_chrome_writer(sink));
  return sink.text;
}

/// A file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("f", MFD_CLOEXEC)) {
    while (!bytes.empty()) {
      const ssize_t written = write(file_, bytes.data(), bytes.size());
      if (written <= 0) throw std::runtime_error("no file in memory");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

/// Reads bytes as a file.
inline Timeline from_chrome(std::string_view bytes, const ReadLimits& limits = {}) {
  const MemoryFile file(bytes);
  return read_chrome(file.path(), limits);
}

}  // namespace weir::timeline::testing
