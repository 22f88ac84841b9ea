#include "allocator/timeline/source.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <utility>
#include <vector>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/mutex.hpp"

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

/// Separates forks from looks at the pools: a look takes locks, which would stay locked in a child.
/// Each waits for the other, at most a tenth of a second, since the program comes first.
/// Thread-safe.
class ForkGate {
 public:
  /// Call before the first look, or no fork waits.
  static void install() noexcept;

  /// Looks may overlap.
  class Look {
   public:
    Look() noexcept;
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    bool entered_;
  };
};

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

struct Sources {
  Mutex mutex{LockRank::kSources};
  std::vector<TimelineSource*> list WEIR_GUARDED_BY(mutex);
};
Sources& sources() {
  static auto* const kSources = [] {
    ForkGate::install();
    return new Sources;  // pools may outlive every static object
  }();
  return *kSources;
}

std::uint16_t next_number() noexcept {
  static std::atomic<std::uint16_t> last{0};
  return static_cast<std::uint16_t>(last.fetch_add(1, std::memory_order_relaxed) + 1);
}

}  // namespace

DeviceFigures* LiveFigures::of(std::uint16_t device) noexcept {
  for (std::size_t i = 0; i < device_count; ++i) {
    if (devices.at(i).device == device) return &devices.at(i);
  }
  if (device_count == kMostDevices) return nullptr;
  DeviceFigures& added = devices.at(device_count++);
  added.device = device;
  return &added;
}

TimelineSource::TimelineSource() noexcept : number_(next_number()) {}

void TimelineSource::enlist() {
  Sources& all = sources();
  const Lock lock(all.mutex);
  all.list.push_back(this);
}

void TimelineSource::leave() noexcept {
  Sources& all = sources();
  const Lock lock(all.mutex);
  std::erase(all.list, this);
}

void for_each_source(const std::function<void(TimelineSource&)>& visit) {
  Sources& all = sources();
  const ForkGate::Look look;
  const Lock lock(all.mutex);
  for (TimelineSource* source : all.list) visit(*source);
}

}  // namespace weir
