#include "allocator/base/log.hpp"

#include <atomic>
#include <cstdio>

#include "allocator/base/calling_thread.hpp"

namespace weir {
namespace {

std::atomic<LogLevel> level_in_force{LogLevel::kWarn};
std::atomic<LogSink> sink_in_force{nullptr};

}  // namespace

LogLevel log_level_from_environment(const Environment& environment) {
  Setting<LogLevel> level = Setting<LogLevel>::by_default(LogLevel::kWarn);
  read_setting(level, environment, {"WEIR_LOG"}, parse_name<LogLevel>);
  return level.value;
}

void set_log_level(LogLevel level) noexcept { level_in_force.store(level); }
LogLevel log_level() noexcept { return level_in_force.load(); }
void set_log_sink(LogSink sink) noexcept { sink_in_force.store(sink); }

void log(LogLevel level, std::string_view text) noexcept {
  if (level > level_in_force.load()) return;
  const NoCancel no_cancel;
  if (const LogSink sink = sink_in_force.load()) {
    sink(level, text);
    return;
  }
  const FileSizeSignalBlocked blocked;  // a line that the disk refuses must not end the program
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(text.size()), text.data());
}

}  // namespace weir
