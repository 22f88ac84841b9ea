#include "tools/timeline/live/block_text.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <limits>

#include "allocator/base/pressure.hpp"

namespace weir::timeline {
namespace {

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& place) {
  return {place.begin(), std::ranges::find(place, '\0')};
}

/// The samples, `first` to before `end`, of a ring of `slots` that were not overwritten while they
/// were read (block.hpp).
struct Whole {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};
Whole whole_of(const BlockCopy& copy, std::uint64_t slots) noexcept {
  const std::uint64_t count = copy.count_before;
  const std::uint64_t after = copy.count_after;
  if (after < count || after - count >= slots) return {};
  return {.first = after < slots - 2 ? 0 : after - (slots - 2), .end = count};
}

std::vector<LiveSample> samples_of(const BlockCopy& copy) {
  std::vector<LiveSample> samples;
  const Whole whole = whole_of(copy, kLiveSamples);
  for (std::uint64_t i = whole.first; i < whole.end; ++i) {
    const LiveSample& sample = copy.block.samples[i % kLiveSamples];
    if (samples.empty() || sample.time_ns > samples.back().time_ns) samples.push_back(sample);
  }
  return samples;
}

std::vector<LiveDevice> newest_figures(const BlockCopy& copy) {
  const Whole whole = whole_of(copy, kLiveDeviceSamples);
  if (whole.first >= whole.end) return {};
  const LiveDeviceSample& sample = copy.block.device_samples[(whole.end - 1) % kLiveDeviceSamples];
  const auto count =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(sample.count, kLiveDevices));
  std::vector<LiveDevice> devices(sample.devices.begin(), sample.devices.begin() + count);
  std::ranges::stable_sort(devices, {}, &LiveDevice::device);
  return devices;
}

/// Publishers count nanoseconds in a signed type, which limits a valid count.
constexpr std::uint64_t kMostLiveCount = std::numeric_limits<std::int64_t>::max();

bool all_within(std::initializer_list<std::uint64_t> values, std::uint64_t most) noexcept {
  return std::ranges::all_of(values, [most](std::uint64_t value) { return value <= most; });
}

bool is_possible(const LiveDevice& device) noexcept {
  return device.device <= kMostLiveDevice &&
         all_within({device.total, device.budget, device.used, device.allocated, device.awaiting,
                     device.cached, device.reserved},
                    kMostLiveBytes) &&
         all_within(
             {device.failures, device.waits, device.waited_ns, device.soft_ns, device.hard_ns},
             kMostLiveCount) &&
         device.pressure < kPressureLevels &&
         (device.total == 0 || device.budget <= device.total) &&
         device.allocated + device.awaiting + device.cached <= device.reserved;
}

bool is_possible(const LiveSample& sample) noexcept {
  return all_within({sample.budget, sample.requested, sample.allocated, sample.awaiting,
                     sample.cached, sample.reserved, sample.peak},
                    kMostLiveBytes * kLiveDevices) &&
         all_within(
             {sample.time_ns, sample.failures, sample.open, sample.submitted, sample.settled,
              sample.stalls, sample.stalled_ns, sample.busy_ns, sample.soft_ns, sample.hard_ns},
             kMostLiveCount) &&
         sample.pressure < kPressureLevels && sample.knows_busy <= 1 &&
         sample.allocated + sample.awaiting + sample.cached <= sample.reserved;
}

}  // namespace

BlockKind kind_of(const LiveBlock& block, std::size_t read, std::uint64_t file_size) noexcept {
  constexpr std::size_t kHead = offsetof(LiveBlock, pid);
  if (read < kHead) return BlockKind::kCut;
  if (block.magic != kLiveMagic) return BlockKind::kNone;
  if (block.version != kLiveVersion) return BlockKind::kOtherVersion;
  const bool whole =
      block.size == sizeof block && file_size == sizeof block && read == sizeof block;
  return whole ? BlockKind::kBlock : BlockKind::kCut;
}

LiveProgram program_of(const BlockCopy& copy, std::uint32_t uid) {
  const LiveBlock& block = copy.block;
  LiveProgram program{.pid = block.pid,
                      .uid = uid,
                      .started = block.started,
                      .pid_namespace = block.pid_namespace,
                      .program = text_of(block.program),
                      .samples = samples_of(copy),
                      .device_figures = newest_figures(copy)};
  const std::size_t devices = std::min<std::size_t>(block.device_count, kLiveDevices);
  for (std::size_t i = 0; i < devices; ++i) program.devices.push_back(text_of(block.devices[i]));
  return program;
}

bool has_possible_figures(const LiveProgram& program) noexcept {
  const std::vector<LiveDevice>& devices = program.device_figures;  // by device
  return std::ranges::all_of(devices, [](const LiveDevice& each) { return is_possible(each); }) &&
         std::ranges::adjacent_find(devices, {}, &LiveDevice::device) == devices.end() &&
         std::ranges::all_of(program.samples,
                             [](const LiveSample& each) { return is_possible(each); });
}

bool is_name_of(std::string_view file, std::uint32_t pid) {
  return file.starts_with(std::to_string(pid) + "-");
}

}  // namespace weir::timeline
