#include "tools/timeline/recorder/recording.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "tools/timeline/model/background_thread.hpp"

namespace weir::timeline {
namespace {

std::atomic<unsigned> toggles{0};
std::atomic<sem_t*> semaphore{nullptr};
std::atomic<bool> is_kept{false};
static_assert(std::atomic<unsigned>::is_always_lock_free &&
              std::atomic<sem_t*>::is_always_lock_free);

void on_signal(int /*signal*/) noexcept {
  const int before = errno;
  toggles.fetch_add(1);
  if (sem_t* const wake = semaphore.load()) (void)sem_post(wake);
  errno = before;
}

bool has_handler(void (*handler)(int)) noexcept {
  struct sigaction now {};
  return sigaction(SIGUSR2, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 &&
         now.sa_handler == handler;
}

bool set_handler(void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(SIGUSR2, &action, nullptr) == 0;
}

}  // namespace

bool take_toggle_signal(sem_t& wake) noexcept {
  const bool is_left = has_handler(on_signal) && semaphore.load() == nullptr;
  if (!is_left && !has_handler(SIG_DFL)) return false;
  toggles.store(0);
  semaphore.store(&wake);
  return set_handler(on_signal);
}

unsigned count_toggles() noexcept { return toggles.exchange(0); }

void leave_toggle_signal() noexcept {
  semaphore.store(nullptr);
  if (!is_kept.load() && has_handler(on_signal)) (void)set_handler(SIG_DFL);
}

void keep_toggle_signal() noexcept { is_kept.store(true); }

void leave_toggle_signal_to_parent() noexcept {
  is_kept.store(false);
  leave_toggle_signal();
}

namespace {

std::atomic<Recorder*> of_process{nullptr};

std::string name_of_host() {
  constexpr std::size_t kLongest = 256;
  std::array<char, kLongest> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Returns a number that changes with each boot of the machine.
std::string number_of_boot() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(file, line);
  return line;
}

RecorderOutput open_output(const Setting<std::string>& name, const Environment& environment) {
  RecorderOutput output;
  output.file = TimelineFile::open(name.source, expand_name(name, environment));
  output.writer = output.file->format().make_writer(*output.file);
  return output;
}

void finish_at_exit() {
  Recorder* const recorder = recording();
  if (recorder == nullptr || recorder->has_ended()) return;
  if (!exits_in_call()) {
    (void)recorder->finish();
    return;
  }
  // The recorder's thread may wait for a lock that the interrupted call holds.
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  say_unlocked(
      LogLevel::kWarn,
      "the timeline's last tenth of a second may be missing: exit() was called in a signal "
      "handler, in the middle of a call");
}

/// Exit handlers run in reverse order. This one is registered after CUPTI is loaded, so that it
/// runs before CUPTI's own: the recorder collects CUPTI's last records.
void finish_before_activity() { (void)std::atexit(finish_at_exit); }

/// Runs once per process.
void watch_the_end() {
  static const bool kOnce = [] {
    (void)pthread_atfork(nullptr, nullptr, [] { of_process.store(nullptr); });
    return std::atexit(finish_at_exit) == 0;
  }();
  (void)kOnce;
}

}  // namespace

ProcessInfo describe_process(const Environment& environment) {
  return {.pid = static_cast<std::uint32_t>(getpid()),
          .rank = find_rank(environment),
          .program = program_invocation_short_name,
          .host = name_of_host(),
          .boot = number_of_boot()};
}

Recorder* begin_recording(const TimelineSettings& settings, RecordingOptions options) {
  Recorder* const before = recording();
  if (before != nullptr && !before->has_ended()) return before;
  if (settings.file.value.empty()) return nullptr;
  const FileSizeSignalBlocked blocked;  // this thread writes the file's head
  RecorderOutput output = open_output(settings.file, options.environment);
  if (!output.file->note().empty()) log(LogLevel::kWarn, "timeline: " + output.file->note());
  watch_the_end();
  try {
    Recorder& recorder = Recorder::make(describe_process(options.environment), std::move(output),
                                        {.buffer = settings.buffer.value,
                                         .batches = settings.batches.value,
                                         .activity = std::move(options.activity),
                                         .activity_began = finish_before_activity,
                                         .by_signal = true,
                                         .keeps_failures = options.keeps_failures});
    of_process.store(&recorder);
    keep_toggle_signal();
  } catch (const std::system_error& error) {
    log(LogLevel::kWarn, std::string("no timeline is recorded: ") + error.what());
    return nullptr;
  }
  return recording();
}

Recorder* recording() noexcept { return of_process.load(); }

}  // namespace weir::timeline
