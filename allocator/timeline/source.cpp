#include "allocator/timeline/source.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/timeline/fork_gate.hpp"

namespace weir {
namespace {

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
