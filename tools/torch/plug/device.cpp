// Settings, cache and statistics of devices.

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "tools/torch/books/segments.hpp"
#include "tools/torch/plug/allocator.hpp"

namespace weir::torch_plug {
namespace {

void show(const SeriesByPool& found, StatArray& figure) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    figure[i].current = found[i].current;
    figure[i].peak = found[i].peak;
    figure[i].allocated += found[i].allocated;
    figure[i].freed += found[i].freed;
  }
}

// What Weir knows replaces native's figure: native's segments are blocks of Weir's pool. That has
// no parts for small and large blocks, so all of it counts as large.
void replace(StatArray& figure, std::int64_t current) {
  figure[0].peak = std::max(figure[0].peak, current);
  figure[0].current = current;
  // The sums were not read at one moment.
  figure[2].current = std::max<std::int64_t>(0, current - figure[1].current);
  figure[2].peak = std::max(figure[2].current, figure[0].peak - figure[1].peak);
}

// Makes sure that Weir has a budget for `device`: it has one from the first allocation on.
void use(c10::DeviceIndex device) {
  weir_free(device, weir_allocate(device, kRounding, nullptr), nullptr);
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
  note_native();
  // After native's, whose segments come back to Weir.
  if (WEIR_TORCH_IS_DEFAULT_POOL) (void)weir_trim(-1);
}

void WeirAllocator::cacheInfo(c10::DeviceIndex device, std::size_t* largest) {
  native_.cacheInfo(device, largest);
}

void WeirAllocator::setMemoryFraction(double fraction, c10::DeviceIndex device) {
  Device& of = device_of(device);
  const std::lock_guard lock(of.fraction_mutex);
  use(device);
  // A fraction is of the memory that PyTorch sees, which is the budget without an earlier fraction.
  if (fraction >= 0 && fraction <= 1) (void)weir_set_fraction(device, 1);
  const weir_memory weir = memory_of(device);
  native_.setMemoryFraction(fraction, device);  // refuses a fraction out of range
  of.fraction = fraction;
  // Weir's limit is for all memory of the process: native's segments and cached memory count as
  // well. It is a share of the device.
  const double budget = static_cast<double>(weir.budget) / static_cast<double>(weir.total);
  if (weir.total == 0 || weir_set_fraction(device, fraction * budget) == 0) {
    TORCH_WARN("Weir cannot limit the memory of device ", static_cast<int>(device), " to ",
               fraction, " of it: its budget is a part of a shared one");
  }
}

// Native has read the settings in init. Asking it makes the device's context, which the first
// tensor does as well.
void WeirAllocator::take_fraction_of_settings(Device& of, c10::DeviceIndex device) {
  of.used = true;
#if WEIR_TORCH_HAS_ENABLE
  const double fraction = of.fraction < 0 ? native_.getMemoryFraction(device) : 1;
  if (fraction < 1) setMemoryFraction(fraction, device);
#else
  (void)device;  // no such setting
#endif
}

DeviceStats WeirAllocator::look_at_native(c10::DeviceIndex device) {
  Counters& counters = device_of(device).counters;
  const std::uint64_t look = counters.next_look();
  DeviceStats stats = native_.getDeviceStats(device);
  const std::array in_order{&stats.allocation, &stats.active, &stats.allocated_bytes,
                            &stats.active_bytes, &stats.requested_bytes};
  NativeLevels levels;
  for (std::size_t series = 0; series < levels.size(); ++series) {
    for (std::size_t pool = 0; pool < levels[series].size(); ++pool) {
      levels[series][pool] = (*in_order[series])[pool].current;
    }
  }
  counters.set_native(look, levels);
  return stats;
}

DeviceStats WeirAllocator::getDeviceStats(c10::DeviceIndex device) {
  DeviceStats stats = look_at_native(device);
  const Statistics sum = device_of(device).counters.read();
  show(sum.blocks, stats.allocation);
  show(sum.active_blocks, stats.active);
  show(sum.bytes, stats.allocated_bytes);
  show(sum.active_bytes, stats.active_bytes);
  show(sum.requested, stats.requested_bytes);
  stats.num_alloc_retries += sum.retries;
  stats.num_ooms += sum.failures;

  const weir_memory weir = memory_of(device);
  const SegmentFigures found = figures_of(all_of([device](weir_block* blocks, std::size_t count) {
    return weir_blocks(device, blocks, count, sizeof(weir_block));
  }));
  show(reserved_of(static_cast<std::int64_t>(weir.reserved),
                   static_cast<std::int64_t>(weir.reserved_peak), sum),
       stats.reserved_bytes);
  replace(stats.segment, found.segments);
  replace(stats.inactive_split, found.split_blocks);
  replace(stats.inactive_split_bytes, found.split_bytes);
  return stats;
}

void WeirAllocator::resetAccumulatedStats(c10::DeviceIndex device) {
  native_.resetAccumulatedStats(device);
  device_of(device).counters.reset_accumulated();
}

void WeirAllocator::resetPeakStats(c10::DeviceIndex device) {
  native_.resetPeakStats(device);
  (void)look_at_native(device);
  device_of(device).counters.reset_peaks();
  (void)weir_reset_peaks(device);
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
  // Older versions calculate it from the memory that they see now, which the fraction itself
  // limits.
  const double fraction = device_of(device).fraction;
  return fraction < 0 ? native_.getMemoryFraction(device) : fraction;
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
