// What a pool says of itself: the report of a failure, its holders, and its observers.

#include <algorithm>
#include <map>
#include <utility>

#include "allocator/error.hpp"
#include "allocator/pool.hpp"

namespace weir {
namespace {

struct Holding {
  Bytes bytes;
  std::uint64_t blocks = 0;
};

std::string stage(std::string_view name, const std::string& found) {
  return "\n    " + std::string(name) +
         std::string(14 - std::min<std::size_t>(name.size(), 14), ' ') + found;
}

}  // namespace

std::string Pool::holders_locked(std::size_t most) const {
  std::map<std::string, Holding> by_label;
  index_->for_each([&](const Block& block) {
    if (block.state >= BlockState::kCached) return;
    std::string label(block.label_view());
    if (label.empty()) label = "(no label)";
    if (block.state != BlockState::kAllocated) label += " (freed, awaiting the device)";
    Holding& holding = by_label[label];
    holding.bytes += block.size;
    ++holding.blocks;
  });
  std::vector<std::pair<std::string, Holding>> sorted(by_label.begin(), by_label.end());
  std::ranges::stable_sort(sorted, std::ranges::greater{},
                           [](const auto& entry) { return entry.second.bytes; });
  std::string text;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    const auto& [label, holding] = sorted[i];
    text += (i == 0 ? "" : "; ") + label + ": " + format_bytes(holding.bytes) + " in " +
            std::to_string(holding.blocks) + (holding.blocks == 1 ? " block" : " blocks");
  }
  return text.empty() ? "none" : text;
}

std::string Pool::holders(std::size_t most) const {
  const Lock lock(mutex_);
  return holders_locked(most);
}

std::string Pool::report(const Attempt& attempt) const {
  const Lock lock(mutex_);
  const Statistics& s = statistics_;
  const auto bytes = [](Bytes b) { return format_bytes(b); };
  std::string text = "out of memory: asked " + bytes(attempt.asked);
  text += attempt.block.count != 0 ? " (a block of " + bytes(attempt.block) + ")"
                                   : " (more than any block can hold)";
  if (!attempt.label.empty()) text += " for '" + std::string(attempt.label) + "'";
  text += " on stream " + std::to_string(attempt.stream.value) + ", budget " + bytes(s.budget);
  text += "\n  reserved " + bytes(s.reserved.current) + " = allocated " +
          bytes(s.allocated.current) + " + awaiting " + bytes(s.awaiting.current) + " + cached " +
          bytes(s.cached.current) + "; largest free block " + bytes(index_->largest_cached());
  text += "\n  biggest holders: " + holders_locked(5);
  if (attempt.block.count == 0) return text + "\n  no stage was tried";
  const bool splits =
      options_.kind.value == PoolKind::kBestFit || options_.kind.value == PoolKind::kPaged;
  const std::string none =
      splits ? "no cached piece that holds it" : "no cached block of this size";
  text += "\n  what each stage found:";
  text += stage("own stream", none);
  text += stage("other streams", none + " that the device has passed");
  text += stage("growth", attempt.upstream_refused
                              ? "the upstream had no room (its capacity is " +
                                    bytes(upstream_.capacity()) + ")"
                              : "the budget had room for " + bytes(attempt.growth_room));
  text +=
      paged_ != nullptr
          ? stage("pages", bytes(attempt.releasable) + " cached could have been moved")
          : stage("release", bytes(attempt.releasable) + " cached could have been given back, " +
                                 std::to_string(attempt.releases) + " segments were");
  text += stage("handover",
                attempt.hand_over_allowed ? none + " on any stream" : "left out by the policy");
  text += stage("wait", !attempt.wait_allowed ? "left out by the policy"
                        : attempt.block > s.budget
                            ? "in vain: the block is larger than the budget"
                            : std::to_string(attempt.waits) +
                                  " waits, nothing is left that the device would free");
  return text;
}

Pool::News Pool::news() {
  News news{.wake = sleepers_ != 0};
  const PressureLevel level =
      pressure_level(statistics_.held.current, statistics_.budget, level_.level);
  if (level == level_.level) return news;
  level_ = {level, statistics_.held.current, statistics_.budget, level_.sequence + 1};
  news.level_changed = true;
  news.pressure = level_;
  ++notifying_;
  return news;
}

void Pool::tell(const News& news) {
  if (news.wake) changed_.notify_all();
  if (!news.level_changed) return;
  std::array<PressureObserver*, kMostObservers> observers{};
  {
    const Lock lock(mutex_);
    observers = observers_;
  }
  for (PressureObserver* observer : observers) {
    if (observer != nullptr) observer->on_pressure(news.pressure);
  }
  {
    const Lock lock(mutex_);
    --notifying_;
  }
  changed_.notify_all();
}

void Pool::observe(PressureObserver& observer) {
  const Lock lock(mutex_);
  const auto free = std::ranges::find(observers_, nullptr);
  if (free == observers_.end()) {
    throw UsageError("observe: a pool takes at most " + std::to_string(kMostObservers) +
                     " pressure observers");
  }
  *free = &observer;
}

void Pool::unobserve(PressureObserver& observer) {
  Lock lock(mutex_);
  std::ranges::replace(observers_, &observer, static_cast<PressureObserver*>(nullptr));
  while (notifying_ != 0) sleep(lock);  // ends: observers may not wait
}

}  // namespace weir
