// Snapshots: native's memory beside ours, as PyTorch's viewer reads it.

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "tools/torch/books/segments.hpp"
#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {
namespace {

// The blocks of a segment sum to its size: the viewer places each behind the one before.
native_api::SegmentInfo segment_of(const Pieces<Block>& pieces, c10::DeviceIndex device) {
  native_api::SegmentInfo segment;
  segment.device = device;
  segment.address = pieces.front().memory.address;
  segment.stream = reinterpret_cast<cudaStream_t>(pieces.front().memory.stream);
  segment.blocks.reserve(pieces.size());
  for (const auto& [memory, block] : pieces) {
    native_api::BlockInfo info;
    info.size = memory.size;
    info.active = memory.state != WEIR_CACHED;
    if (block != nullptr) {
      info.allocated = true;
      info.requested_size = block->requested;
      info.context_when_allocated = block->context;
      segment.allocated_size += memory.size;
      segment.requested_size += block->requested;
    }
    if (info.active) segment.active_size += memory.size;
    segment.total_size += memory.size;
    segment.is_large = segment.is_large || memory.size > kSmallLimit;
    segment.blocks.push_back(std::move(info));
  }
  return segment;
}

}  // namespace

void WeirAllocator::add_segments(c10::DeviceIndex device,
                                 std::vector<native_api::SegmentInfo>& segments) {
  const std::vector<weir_block> memory = all_of([device](weir_block* blocks, std::size_t count) {
    return weir_blocks(device, blocks, count, sizeof(weir_block));
  });
  std::unordered_map<std::uint64_t, const weir_block*> allocated;
  for (const weir_block& each : memory) {
    if (each.state == WEIR_ALLOCATED) allocated.emplace(each.address, &each);
  }
  // A block that came or went between the two lists is in neither.
  std::unordered_map<std::uint64_t, Block> ours;
  for (auto& [address, block] : blocks_.all()) {
    const auto found = allocated.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == allocated.end() || found->second->requested != block.bytes) continue;
    ours.emplace(found->first, std::move(block));
  }
  const auto find = [&ours](std::uint64_t address) -> const Block* {
    const auto found = ours.find(address);
    return found == ours.end() ? nullptr : &found->second;
  };
  for (const auto& pieces : segments_of<Block>(memory, find)) {
    segments.push_back(segment_of(pieces, device));
  }
}

native_api::SnapshotInfo WeirAllocator::snapshot(WEIR_TORCH_SNAPSHOT) {
  native_api::SnapshotInfo snapshot = native_.snapshot(WEIR_TORCH_SNAPSHOT_PASSED);
  if (!WEIR_TORCH_IS_DEFAULT_POOL) return snapshot;  // a private pool is native's alone
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    add_segments(static_cast<c10::DeviceIndex>(device), snapshot.segments);
  }
  std::stable_sort(snapshot.segments.begin(), snapshot.segments.end(),
                   [](const auto& a, const auto& b) {
                     return std::tie(a.device, a.address) < std::tie(b.device, b.address);
                   });
#if WEIR_TORCH_FROM(11)
  if (!with_traces) return snapshot;
#endif
  recorder_.merge_into(snapshot.device_traces);
  return snapshot;
}

}  // namespace weir::torch_plug
