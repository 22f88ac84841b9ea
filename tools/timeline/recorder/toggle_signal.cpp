#include "tools/timeline/recorder/toggle_signal.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>

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

}  // namespace weir::timeline
