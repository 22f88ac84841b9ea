// Settings, cache and statistics of devices.

#include <c10/util/Exception.h>

#include <algorithm>

#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {
namespace {

constexpr std::uint64_t kLeastBudget = std::uint64_t{1} << 20U;  // see weir_set_budget

void add(StatArray& sum, const SeriesByPool& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    sum[i].current += more[i].current;
    sum[i].peak += more[i].peak;
    sum[i].allocated += more[i].allocated;
    sum[i].freed += more[i].freed;
  }
}

}  // namespace

std::string WeirAllocator::name() { return native_.name(); }

void WeirAllocator::init(int device_count) {
  native_.init(device_count);
  while (static_cast<int>(devices_.size()) < device_count) {
    devices_.push_back(std::make_unique<Device>());
  }
}

bool WeirAllocator::initialized() { return native_.initialized(); }

void WeirAllocator::emptyCache(WEIR_TORCH_EMPTY_CACHE) {
  native_.emptyCache(WEIR_TORCH_EMPTY_CACHE_PASSED);
  // After native's, whose segments come back to Weir.
  if (WEIR_TORCH_IS_DEFAULT_POOL) (void)weir_trim(-1);
}

void WeirAllocator::cacheInfo(c10::DeviceIndex device, std::size_t* largest) {
  native_.cacheInfo(device, largest);
}

// Weir's budget limits all memory of the process on a device, so native's segments and cached
// memory count as well.
void WeirAllocator::setMemoryFraction(double fraction, c10::DeviceIndex device) {
  Device& of = device_of(device);
  const std::lock_guard lock(of.fraction_mutex);
  // Native takes its part of the memory that it sees, which is the budget.
  if (of.budget != 0) (void)weir_set_budget(device, of.budget);
  native_.setMemoryFraction(fraction, device);  // refuses a fraction out of range
  if (of.budget == 0) of.budget = budget_of_used(device);
  const auto part = static_cast<std::uint64_t>(fraction * static_cast<double>(of.budget));
  TORCH_CHECK(weir_set_budget(device, std::max(part, kLeastBudget)) == 1,
              "Weir cannot limit the memory of device ", static_cast<int>(device));
}

// A device has a budget from its first allocation on.
std::uint64_t WeirAllocator::budget_of_used(c10::DeviceIndex device) {
  void* const first = weir_.allocate(static_cast<ssize_t>(kRounding), device, nullptr);
  if (first != nullptr) weir_.free(first, 0, device, nullptr);
  return memory_of(device).budget;
}

DeviceStats WeirAllocator::getDeviceStats(c10::DeviceIndex device) {
  Device& of = device_of(device);
  DeviceStats stats = native_.getDeviceStats(device);
  const Statistics tensors = of.counters.read();
  add(stats.allocation, tensors.blocks);
  add(stats.active, tensors.blocks);
  add(stats.allocated_bytes, tensors.bytes);
  add(stats.active_bytes, tensors.bytes);
  add(stats.requested_bytes, tensors.requested);
  stats.num_alloc_retries += tensors.retries;
  stats.num_ooms += tensors.failures;

  // Native's segments are Weir's blocks, so Weir's figure contains them. Weir has one pool for all
  // sizes: what is not native's small pool or a small tensor's counts as the large pool.
  const auto reserved = static_cast<std::int64_t>(memory_of(device).reserved);
  auto& [all, small, large] = stats.reserved_bytes;
  of.note_reserved(reserved);
  all.current = reserved;
  all.peak = std::max(of.most_reserved.load(), stats.allocated_bytes[0].peak);
  small.current = std::min(reserved, small.current + tensors.bytes[1].current);
  small.peak = std::min(all.peak, small.peak + tensors.bytes[1].peak);
  large.current = reserved - small.current;
  large.peak = all.peak - small.peak;
  return stats;
}

void WeirAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  native_.resetAccumulatedStats(device);
  device_of(device).counters.reset_accumulated();
}

void WeirAllocator::resetPeakStats(c10::DeviceIndex device) {
  Device& of = device_of(device);
  native_.resetPeakStats(device);
  of.counters.reset_peaks();
  of.most_reserved = static_cast<std::int64_t>(memory_of(device).reserved);
}

void WeirAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  native_.copy_data(to, from, bytes);
}

void WeirAllocator::enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex peer) {
  native_.enablePeerAccess(device, peer);
}

cudaError_t WeirAllocator::memcpyAsync(void* to, int to_device, const void* from, int from_device,
                                       std::size_t bytes, cudaStream_t stream, bool peers) {
  return native_.memcpyAsync(to, to_device, from, from_device, bytes, stream, peers);
}

#if WEIR_TORCH_HAS_ENABLE
double WeirAllocator::getMemoryFraction(c10::DeviceIndex device) {
  return native_.getMemoryFraction(device);
}

void WeirAllocator::enable(bool value) {
  native_.enable(value);
  enabled_.store(value, std::memory_order_relaxed);
}

bool WeirAllocator::isEnabled() const { return native_.isEnabled(); }
#endif

#if WEIR_TORCH_HAS_SEGMENT_SIZES
std::vector<native_api::StreamSegmentSize> WeirAllocator::getExpandableSegmentSizes(
    c10::DeviceIndex device) {
  return native_.getExpandableSegmentSizes(device);
}
#endif

#if WEIR_TORCH_HAS_MEMORY_INFO
std::pair<std::size_t, std::size_t> WeirAllocator::getMemoryInfo(c10::DeviceIndex device) {
  return native_.getMemoryInfo(device);
}
#endif

}  // namespace weir::torch_plug
