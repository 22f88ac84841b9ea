// What a pool tells: the report of a failure, the holders of memory, its blocks for snapshots, and
// what it writes to recorders and shows to live views.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/index/block_index.hpp"
#include "allocator/pool.hpp"
#include "allocator/pool_kind.hpp"

namespace weir {
namespace {

std::string text_of(const MemoryHolder& holder) {
  return holder.label + ": " + format_bytes(holder.bytes) + " in " + std::to_string(holder.blocks) +
         (holder.blocks == 1 ? " block" : " blocks");
}

/// Returns them in one line.
std::string text_of(const std::vector<MemoryHolder>& holders) {
  std::string text;
  for (const MemoryHolder& holder : holders) text += (text.empty() ? "" : "; ") + text_of(holder);
  return text.empty() ? "none" : text;
}

std::string stage(std::string_view name, const std::string& found) {
  return "\n    " + std::string(name) +
         std::string(14 - std::min<std::size_t>(name.size(), 14), ' ') + found;
}

}  // namespace

std::vector<MemoryHolder> Pool::biggest_holders(std::size_t most) const {
  std::map<std::string, MemoryHolder> by_label;
  state_.index->for_each([&](const Block& block) {
    if (block.state >= BlockState::kCached) return;
    std::string label(block.label_view());
    if (label.empty()) label = "(no label)";
    if (block.state != BlockState::kAllocated) label += " (freed, awaiting the device)";
    MemoryHolder& holder = by_label[label];
    holder.bytes += block.size;
    ++holder.blocks;
  });
  std::vector<MemoryHolder> sorted;
  sorted.reserve(by_label.size());
  for (auto& [label, holder] : by_label) sorted.push_back({label, holder.bytes, holder.blocks});
  std::ranges::stable_sort(sorted, std::ranges::greater{}, &MemoryHolder::bytes);
  sorted.resize(std::min(most, sorted.size()));
  return sorted;
}

std::string Pool::holders(std::size_t most) const {
  Lock lock(state_.mutex);
  const std::vector<MemoryHolder> biggest = biggest_holders(most);
  lock.unlock();
  return text_of(biggest);
}

OutOfMemory Pool::out_of_memory(const Attempt& attempt) const {
  const Lock lock(state_.mutex);
  MemoryShortage figures{.asked = attempt.asked,
                         .block = attempt.block,
                         .budget = state_.statistics.budget,
                         .allocated = state_.statistics.allocated.current,
                         .awaiting = state_.statistics.awaiting.current,
                         .cached = state_.statistics.cached.current,
                         .largest_cached = state_.index->largest_cached(),
                         .holders = biggest_holders(5)};
  const std::string text = report(attempt, figures);
  return OutOfMemory(text, std::move(figures));
}

std::string Pool::report(const Attempt& attempt, const MemoryShortage& figures) const {
  const Statistics& s = state_.statistics;
  const auto bytes = [](Bytes b) { return format_bytes(b); };
  std::string text = "out of memory: asked " + bytes(attempt.asked);
  text += attempt.block.count != 0 ? " (a block of " + bytes(attempt.block) + ")"
                                   : " (more than any block can hold)";
  if (!attempt.label.empty()) text += " for '" + std::string(attempt.label) + "'";
  text += " on stream " + std::to_string(attempt.stream.value) + ", budget " + bytes(s.budget);
  text += "\n  reserved " + bytes(s.reserved.current) + " = allocated " +
          bytes(s.allocated.current) + " + awaiting " + bytes(s.awaiting.current) + " + cached " +
          bytes(s.cached.current) + "; largest free block " + bytes(figures.largest_cached);
  if (budget_source() != nullptr) {
    text +=
        "\n  the budget is this process's part of a shared one, which had no more "
        "(WEIR_SHARE_FLOOR: what it always has)";
  }
  text += std::string("\n  biggest holders:") + (figures.holders.empty() ? " none" : "");
  for (const MemoryHolder& holder : figures.holders) text += "\n    " + text_of(holder);
  if (attempt.block.count == 0) return text + "\n  no stage was tried";
  const std::string none =
      kind_.splits ? "no cached piece that holds it" : "no cached block of this size";
  text += "\n  what each stage found:";
  text += stage("own stream", none);
  text += stage("other streams", none + " that the device has passed");
  text += stage("growth", attempt.upstream_refused
                              ? "the upstream had no room (its capacity is " +
                                    bytes(state_.upstream.capacity()) + ")"
                              : "the budget had room for " + bytes(attempt.growth_room));
  const StageReport room = strategy_->room_found(attempt);
  text += stage(room.stage, room.found);
  text += stage("handover",
                attempt.hand_over_allowed ? none + " on any stream" : "not allowed by the policy");
  text += stage(
      "wait", !attempt.wait_allowed ? "not allowed by the policy"
              : attempt.block > s.budget
                  ? "would not help: the block is larger than the budget"
                  : std::to_string(attempt.waits) + " waits, and no pending work would free more");
  return text;
}

namespace {

std::optional<PoolBlock::State> state_of(const Block& block) {
  switch (block.state) {
    case BlockState::kAllocated:
      return PoolBlock::State::kAllocated;
    case BlockState::kFreeing:
    case BlockState::kAwaiting:
      return PoolBlock::State::kAwaiting;
    case BlockState::kCached:
      return PoolBlock::State::kCached;
    case BlockState::kMoving:
    case BlockState::kVoid:
    case BlockState::kStale:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<PoolBlock> Pool::blocks() const {
  std::vector<PoolBlock> all;
  {
    const Lock lock(state_.mutex);
    all.reserve(state_.index->blocks());
    state_.index->for_each([&](const Block& block) {
      const auto state = state_of(block);
      if (!state) return;
      const bool held = *state == PoolBlock::State::kAllocated;
      all.push_back({.begin = block.begin(),
                     .size = block.size,
                     .requested = held ? block.requested : Bytes{},
                     .home = block.home,
                     .state = *state,
                     .begins_segment = block.neighbours.previous == nullptr});
    });
  }
  std::ranges::sort(all, {}, &PoolBlock::begin);
  // A gap ends a segment too: addresses without pages.
  std::uintptr_t end = 0;
  for (PoolBlock& block : all) {
    block.begins_segment = block.begins_segment || block.begin != end;
    end = block.begin + block.size.count;
  }
  return all;
}

void Pool::note_self(TimelineSink& sink) {
  state_.note(sink,
              {.bytes = state_.statistics.budget.count,
               .kind = TimelineKind::kPool,
               .detail = static_cast<std::uint8_t>(state_.options.place.host ? 1 : 0)},
              state_.options.place.name);
}

void Pool::record_live(TimelineSink& sink) {
  const Lock lock(state_.mutex);
  note_self(sink);
  state_.index->for_each([&](const Block& block) WEIR_NO_THREAD_SAFETY_ANALYSIS {
    if (block.state != BlockState::kAllocated && block.state != BlockState::kFreeing) return;
    state_.note(sink,
                {.id = block.begin(),
                 .bytes = block.size.count,
                 .requested = block.requested.count,
                 .stream = block.home.value,
                 .kind = TimelineKind::kLive},
                block.label_view());
  });
}

void Pool::add_figures(LiveFigures& figures) const {
  if (state_.options.place.host) return;
  DeviceFigures none;
  DeviceFigures* const known = figures.of(state_.options.place.device);
  DeviceFigures& device = known != nullptr ? *known : none;
  const Lock lock(state_.mutex);
  // Pools of one GPU share its budget. Pools without a GPU have one each.
  const Bytes shared = state_.options.place.device != 0 ? device.budget : Bytes{};
  const Bytes more = minus_or_zero(state_.statistics.budget, shared);
  device.budget += more;
  device.allocated += state_.statistics.allocated.current;
  device.awaiting += state_.statistics.awaiting.current;
  device.cached += state_.statistics.cached.current;
  device.reserved += state_.statistics.reserved.current;
  device.failures += state_.statistics.failures;
  device.waits += state_.statistics.waits;
  device.waited += state_.statistics.waited;
  device.raise_pressure(state_.pressure.level(),
                        state_.pressure.times(PressureGauge::Clock::now()));
  figures.budget += more;
  figures.requested += state_.statistics.requested.current;
  figures.allocated += state_.statistics.allocated.current;
  figures.awaiting += state_.statistics.awaiting.current;
  figures.cached += state_.statistics.cached.current;
  figures.reserved += state_.statistics.reserved.current;
  figures.peak += state_.statistics.reserved.peak;
  figures.failures += state_.statistics.failures;
}

}  // namespace weir
