// libweir_timeline.so, which CUDA loads if CUDA_INJECTION64_PATH names it. It records the device's
// timeline for a program that keeps its own allocator. A failure here prints a line on standard
// error and never stops the program.

#include <dlfcn.h>

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "allocator/base/log.hpp"
#include "tools/timeline/cupti/source.hpp"
#include "tools/timeline/recorder/recording.hpp"

namespace weir::timeline {
namespace {

/// Returns whether libweir.so is loaded, which records timelines itself.
bool is_weir_loaded() noexcept {
  const bool loaded = dlsym(RTLD_DEFAULT, "weir_api_version") != nullptr;
  (void)dlerror();  // so that the program's next dlerror() does not report our failure
  return loaded;
}

void begin() {
  set_log_level(log_level_from_environment());
  if (is_weir_loaded()) {
    log(LogLevel::kWarn, "libweir_timeline.so does nothing: libweir.so records this program");
    return;
  }
  TimelineSettings settings = TimelineSettings::from_environment();
  if (settings.file.value.empty()) {
    log(LogLevel::kWarn, "libweir_timeline.so records nothing: WEIR_TIMELINE names no file");
    return;
  }
  if (std::exchange(settings.batches.value, std::nullopt)) {
    log(LogLevel::kWarn,
        settings.batches.source +
            " is ignored: libweir_timeline.so does not see batches and records the whole run");
  }
  // On the thread that initializes CUDA, so that the first kernel is recorded as well. The recorder
  // calls start() again, which does nothing.
  auto activity = make_cupti_source();
  if (const std::string line = activity->start(); !line.empty()) {
    log(LogLevel::kWarn, line);
    return;
  }
  RecordingOptions options;
  options.activity = std::move(activity);
  (void)begin_recording(settings, std::move(options));
}

}  // namespace
}  // namespace weir::timeline

/// CUDA calls this when it is initialized. Always returns 1, for success, so that the program goes
/// on.
extern "C" __attribute__((visibility("default"))) int
InitializeInjection() {  // NOLINT(readability-identifier-naming): CUDA looks it up
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return 1;
  try {
    weir::timeline::begin();
  } catch (const std::exception& error) {
    weir::log(weir::LogLevel::kWarn, std::string("nothing is recorded: ") + error.what());
  }
  return 1;
}
