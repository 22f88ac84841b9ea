#include "allocator/timeline/fork_gate.hpp"

#include <pthread.h>

#include <atomic>
#include <ctime>
#include <utility>

#include "allocator/base/no_cancel.hpp"

namespace weir {
namespace {

constexpr int kForking = -1;
constinit std::atomic<int> looks{0};   ///< in progress; kForking: none may begin
constinit std::atomic<int> wanted{0};  ///< waiting forks, which block new looks
constinit thread_local bool closed_here = false;

/// Retries for up to a tenth of a second.
template <typename Try>
bool wait_for(const Try& succeeds) noexcept {
  constexpr int kMostWaits = 1000;
  constexpr timespec kWait{.tv_sec = 0, .tv_nsec = 100'000};
  for (int i = 0; i < kMostWaits; ++i) {
    if (succeeds()) return true;
    const NoCancel no_cancel;
    nanosleep(&kWait, nullptr);
  }
  return false;
}

void close_before_fork() noexcept {
  wanted.fetch_add(1);
  closed_here = wait_for([] {
    int none = 0;
    return looks.compare_exchange_strong(none, kForking);
  });
}

void open_in_parent() noexcept {
  if (std::exchange(closed_here, false)) looks.store(0);
  wanted.fetch_sub(1);
}

void open_in_child() noexcept {  // the child has only this thread
  closed_here = false;
  looks.store(0);
  wanted.store(0);
}

}  // namespace

void ForkGate::install() noexcept {
  static const int kInstalled = pthread_atfork(close_before_fork, open_in_parent, open_in_child);
  (void)kInstalled;
}

ForkGate::Look::Look() noexcept
    : entered_(wait_for([] {
        int now = looks.load();
        return wanted.load() == 0 && now != kForking && looks.compare_exchange_strong(now, now + 1);
      })) {}

ForkGate::Look::~Look() {
  if (entered_) looks.fetch_sub(1);
}

}  // namespace weir
