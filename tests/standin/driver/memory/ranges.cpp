#include "tests/standin/driver/memory/ranges.hpp"

#include "tests/standin/driver/memory/memory.hpp"

namespace weir::standin {
namespace {

/// For an address without a page.
Range find_reserved(Driver& driver, std::uintptr_t address) {
  auto after = driver.reservations.upper_bound(address);
  if (!driver.reserved_is_device || after == driver.reservations.begin()) return {};
  const auto& [start, bytes] = *std::prev(after);
  if (address - start >= bytes) return {};
  return {RangeKind::kDevice, start, bytes, &driver.devices.front(), false};
}

}  // namespace

Range find_range(Driver& driver, std::uintptr_t address) {
  std::uintptr_t base = 0;
  if (const Block* block = find_block(driver, address, &base); block != nullptr) {
    const bool of_device = is_of_device(block->kind) || block->kind == BlockKind::kImported;
    RangeKind kind = of_device ? RangeKind::kDevice : RangeKind::kPinned;
    if (block->kind == BlockKind::kManaged) kind = RangeKind::kManaged;
    return {kind, base, block->bytes, block->pool ? block->pool->device : block->context->device};
  }
  auto after = driver.mappings.upper_bound(address);
  if (after == driver.mappings.begin()) return find_reserved(driver, address);
  auto found = std::prev(after);
  if (address - found->first >= found->second.bytes) return find_reserved(driver, address);
  Range range{RangeKind::kDevice, found->first, found->second.bytes,
              driver.pages.at(found->second.pages).device};
  // To a copy, neighbouring pages are one range.
  for (; after != driver.mappings.end() && after->first == range.start + range.bytes; ++after) {
    range.bytes += after->second.bytes;
  }
  while (found != driver.mappings.begin()) {
    const auto before = std::prev(found);
    if (before->first + before->second.bytes != range.start) break;
    range.start = before->first;
    range.bytes += before->second.bytes;
    found = before;
  }
  return range;
}

}  // namespace weir::standin
