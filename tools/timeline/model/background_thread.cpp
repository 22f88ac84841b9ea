#include "tools/timeline/model/background_thread.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <string_view>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/mutex.hpp"

namespace weir::timeline {
namespace {

std::atomic<int> background{0};

/// Returns whether the first thread has ended: it stays a zombie until the last one ends.
bool main_has_ended() noexcept {
  constexpr std::size_t kPath = 64;
  std::array<char, kPath> path{};
  (void)std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", getpid());
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  constexpr std::size_t kLine = 128;
  std::array<char, kLine> line{};
  const ssize_t size = read(file, line.data(), line.size());
  close(file);
  if (size <= 0) return false;
  // The state follows the name, which is in parentheses and may contain some.
  const std::string_view text(line.data(), static_cast<std::size_t>(size));
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string_view::npos && text.substr(name_end + 2).starts_with('Z');
}

int count_threads() noexcept {
  DIR* const folder = opendir("/proc/self/task");
  if (folder == nullptr) return 0;
  int count = 0;
  while (const dirent* const entry = readdir(folder)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(folder);
  return count;
}

}  // namespace

BackgroundThread::BackgroundThread() noexcept {
  // A child has none of its parent's threads.
  static const int kForks = pthread_atfork(nullptr, nullptr, [] { background.store(0); });
  (void)kForks;
  background.fetch_add(1);
}
BackgroundThread::~BackgroundThread() { background.fetch_sub(1); }

AllSignalsBlocked::AllSignalsBlocked() noexcept {
  sigset_t all;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before_);
}
AllSignalsBlocked::~AllSignalsBlocked() { (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool program_has_ended() noexcept {
  return main_has_ended() && count_threads() == background.load() + 1;
}

namespace {

constinit std::atomic<bool (*)() noexcept> call_check{nullptr};

iovec part(std::string_view text) noexcept {
  // writev only reads it.
  return {.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
}

}  // namespace

void set_call_check(bool (*is_in_call)() noexcept) noexcept { call_check.store(is_in_call); }

bool exits_in_call() noexcept {
  if (held_lock_ranks() != 0) return true;
  const auto is_in_call = call_check.load();
  return is_in_call != nullptr && is_in_call();
}

void say_unlocked(LogLevel level, std::string_view text) noexcept {
  if (level > log_level()) return;
  const NoCancel no_cancel;
  const FileSizeSignalBlocked blocked;
  const std::array line{part("weir: "), part(text), part("\n")};
  (void)!writev(STDERR_FILENO, line.data(), static_cast<int>(line.size()));
}

}  // namespace weir::timeline
