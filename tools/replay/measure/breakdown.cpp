#include "tools/replay/measure/breakdown.hpp"

#include <algorithm>
#include <map>

#include "tools/replay/measure/engine.hpp"
#include "tools/replay/subject/pool_subject.hpp"

namespace weir::replay {
namespace {

constexpr std::uint64_t size_of(AddressRange range) noexcept { return range.end - range.begin; }

/// Returns the pages of `held` that contain `part`. The last page may be incomplete.
AddressRange pages_under(AddressRange part, AddressRange held, std::uint64_t page) {
  const std::uint64_t first = (part.begin - held.begin) / page;
  const std::uint64_t last = (part.end - held.begin - 1) / page;
  return {held.begin + first * page, std::min(held.begin + (last + 1) * page, held.end)};
}

/// Adds up the pages with live blocks, in address order.
class Sweep {
 public:
  /// Adds the next live part and its pages. No part lies at address zero.
  void add(AddressRange part, AddressRange pages) {
    if (pages.begin > pages_end_) {
      finish();
      page_ends_ += part.begin - pages.begin;
    } else {
      holes_ += part.begin - live_end_;
    }
    live_ += size_of(part);
    live_end_ = part.end;
    pages_end_ = pages.end;
  }
  void finish() {
    page_ends_ += pages_end_ - live_end_;
    live_end_ = pages_end_;
  }

  [[nodiscard]] Bytes live() const { return {live_}; }
  [[nodiscard]] Bytes page_ends() const { return {page_ends_}; }
  [[nodiscard]] Bytes holes() const { return {holes_}; }

 private:
  std::uint64_t live_ = 0, page_ends_ = 0, holes_ = 0;
  std::uint64_t live_end_ = 0, pages_end_ = 0;  ///< end of the last part
};

/// Tracks live and held ranges by address during a replay.
class Follower {
 public:
  void add(const DriverEvent& event) {
    if (event.obtained) {
      held_[event.address] = event.size;
    } else {
      held_.erase(event.address);
    }
  }
  void add(const Step& step) {
    const auto address = reinterpret_cast<std::uintptr_t>(step.pointer);
    if (step.what.action == Action::kAllocate) {
      live_[address] = step.footprint.allocated - allocated_;
    } else if (step.what.action == Action::kFree) {
      live_.erase(address);
    }
    allocated_ = step.footprint.allocated;
  }
  [[nodiscard]] Holdings holdings(const Step& step, Bytes page) const {
    return {.live = ranges_of(live_),
            .held = ranges_of(held_),
            .page = page,
            .reserved = step.footprint.reserved,
            .requested = step.requested};
  }

 private:
  using Sizes = std::map<std::uint64_t, Bytes>;  ///< by address

  static std::vector<AddressRange> ranges_of(const Sizes& sizes) {
    std::vector<AddressRange> ranges;
    ranges.reserve(sizes.size());
    for (const auto& [address, size] : sizes) ranges.push_back({address, address + size.count});
    return ranges;
  }

  Bytes allocated_;  ///< after the last step
  Sizes live_, held_;
};

}  // namespace

Breakdown break_down(const Holdings& now) {
  Sweep sweep;
  for (const AddressRange held : now.held) {
    auto live = std::ranges::upper_bound(now.live, held.begin, {}, &AddressRange::end);
    for (; live != now.live.end() && live->begin < held.end; ++live) {
      const AddressRange part{std::max(live->begin, held.begin), std::min(live->end, held.end)};
      sweep.add(part, pages_under(part, held, now.page.count));
    }
  }
  sweep.finish();
  return {.page = now.page,
          .reserved = now.reserved,
          .requested = now.requested,
          .rounding = sweep.live() - now.requested,
          .page_ends = sweep.page_ends(),
          .holes = sweep.holes(),
          .whole_pages = now.reserved - (sweep.live() + sweep.page_ends() + sweep.holes())};
}

std::optional<Breakdown> break_down_peak(const Trace& trace, const MakeSubject& make,
                                         Bytes capacity) {
  // First find the operation, then take stock: recording every new maximum would be quadratic.
  const std::unique_ptr<Subject> first = make(capacity);
  if (dynamic_cast<PoolSubject*>(first.get()) == nullptr) return std::nullopt;
  Bytes most;
  std::uint64_t operation = 0;
  (void)replay(trace, *first, [&](const Step& step) {
    if (step.footprint.reserved <= most) return;
    most = step.footprint.reserved;
    operation = step.operation;
  });
  if (most.count == 0) return std::nullopt;

  Follower follower;  // outlives the subject, which returns memory when it ends
  const std::unique_ptr<Subject> second = make(capacity);
  auto& pool = dynamic_cast<PoolSubject&>(*second);
  pool.tell([&follower](const DriverEvent& event) { follower.add(event); });
  Breakdown peak;
  (void)replay(trace, pool, [&](const Step& step) {
    follower.add(step);
    if (step.operation != operation) return;
    peak = break_down(follower.holdings(step, pool.page_size()));
    peak.operation = operation + 1;
  });
  return peak;
}

}  // namespace weir::replay
