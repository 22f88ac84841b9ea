// libFuzzer's target: the readers of published blocks (weir top, ps, set) and of what is asked in
// them. Whatever the bytes: what they say is within bounds, and only a whole request is taken.

#include <algorithm>
#include <memory>
#include <string>

#include "fuzz.hpp"
#include "tools/timeline/live/block.hpp"
#include "tools/timeline/live/block_text.hpp"
#include "tools/timeline/live/claims.hpp"

namespace weir::testing {
namespace {

using namespace timeline;  // NOLINT(google-build-using-namespace): of one file

/// What is read besides the block: as much of it and of the file as was there, and a request.
struct Head {
  std::uint64_t read = 0;
  std::uint64_t file_size = 0;
  std::uint64_t count_before = 0;
  std::uint64_t count_after = 0;
  LiveRequest request;
  std::uint64_t served = 0;
  std::uint64_t total = 0;
};

/// What `weir ps` and `weir top` show: any figures that can be.
void check_shown(const LiveProgram& program) {
  std::uint64_t before = ~std::uint64_t{0};
  for (const LiveDevice& device : program.device_figures) {
    require(device.device <= kMostLiveDevice && device.device != before);
    before = device.device;
    require(device.total == 0 || device.budget <= device.total);
    require(std::max({device.total, device.budget, device.used, device.reserved}) <=
            kMostLiveBytes);
    require(std::max({device.allocated, device.awaiting, device.cached}) <= device.reserved);
  }
  for (const LiveSample& sample : program.samples) {
    require(std::max({sample.budget, sample.reserved, sample.peak, sample.requested}) <=
            kMostLiveBytes * kLiveDevices);
    require(std::max({sample.allocated, sample.awaiting, sample.cached}) <= sample.reserved);
  }
}

/// The locks that /proc/locks would tell of.
void check_locks(const std::string& text) {
  for (const auto& [file, pid] : flock_holders(text)) {
    require(pid != 0 && text.find(file) != std::string::npos);
  }
}

void check(const LiveProgram& program) {
  require(program.program.size() <= sizeof(LiveBlock::program));
  require(program.devices.size() <= kLiveDevices && program.samples.size() <= kLiveHistory);
  require(program.device_figures.size() <= kLiveDevices);
  const auto is_earlier = [](const LiveSample& a, const LiveSample& b) {
    return a.time_ns >= b.time_ns;
  };
  require(std::ranges::adjacent_find(program.samples, is_earlier) == program.samples.end());
  require(std::ranges::is_sorted(program.device_figures, {}, &LiveDevice::device));
  if (has_possible_figures(program)) check_shown(program);
}

}  // namespace

void fuzz(std::string_view bytes) {
  Head head;
  if (!take_head(bytes, head)) return;
  const auto copy = std::make_unique<BlockCopy>();
  fill_with(bytes, copy->block);
  copy->count_before = head.count_before;
  copy->count_after = head.count_after;
  const BlockKind kind = kind_of(copy->block, head.read % (sizeof(LiveBlock) + 1), head.file_size);
  require(kind != BlockKind::kBlock || copy->block.magic == kLiveMagic);
  check(program_of(*copy, 0));
  check_locks(std::string(bytes));

  const auto answer = answer_of(copy->block.answer);
  require(!answer || std::max({answer->before, answer->after, answer->used, answer->total}) <=
                         Bytes{kMostLiveBytes});

  const auto ask = ask_of(head.request, head.served);
  require(!ask || (head.request.begin == head.request.end && head.request.end != 0));
  require(!ask || head.request.end != head.served);
  require(!ask || !is_in_range(ask->budget, {head.total}) ||
          (ask->budget >= kLeastBudget && ask->budget.count <= head.total));
}

}  // namespace weir::testing
