// The report of a failure, and the holders of memory.

#include <algorithm>
#include <map>
#include <utility>

#include "allocator/base/error.hpp"
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

}  // namespace weir
