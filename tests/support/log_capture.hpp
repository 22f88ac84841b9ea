#pragma once

// Collects log lines while it lives, in place of standard error. One at a time.

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/log.hpp"

namespace weir::testing {

class LogCapture {
 public:
  LogCapture() {
    lines().clear();
    set_log_sink([](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex());
      lines().push_back({level, std::string(text)});
    });
  }
  ~LogCapture() { set_log_sink(nullptr); }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The lines so far that contain `part`.
  [[nodiscard]] std::vector<std::string> containing(std::string_view part) const {
    const std::lock_guard lock(mutex());
    std::vector<std::string> found;
    for (const Line& line : lines()) {
      if (line.text.find(part) != std::string::npos) found.push_back(line.text);
    }
    return found;
  }

 private:
  struct Line {
    LogLevel level;
    std::string text;
  };
  // A sink is a plain function, so its target is static.
  static std::mutex& mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::vector<Line>& lines() {
    static std::vector<Line> lines;
    return lines;
  }
};

}  // namespace weir::testing
