#pragma once

// The base of the tests of Pool: a device that the test moves, an upstream that counts, and
// streams.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "support/faulty_upstream.hpp"
#include "support/manual_progress.hpp"
#include "support/options_of.hpp"
#include "support/print.hpp"

namespace weir::testing {

inline constexpr std::array kAllKinds{PoolKind::kUnpooled, PoolKind::kNaive, PoolKind::kRound,
                                      PoolKind::kBestFit, PoolKind::kPaged};
/// Kinds that reuse freed blocks.
inline constexpr std::array kKeepingKinds{PoolKind::kNaive, PoolKind::kRound, PoolKind::kBestFit,
                                          PoolKind::kPaged};

/// Whether blocks are cut from a larger piece of the upstream; otherwise each is a whole one.
[[nodiscard]] inline bool splits_blocks(PoolKind kind) {
  return kind == PoolKind::kBestFit || kind == PoolKind::kPaged;
}

/// Pages of simulated memory, small enough for budgets of KiB.
inline constexpr Bytes kPage = kib(4);

/// Tests that are the same for several kinds, except for the size at which a block is all that it
/// came with: a segment, or pages.
struct KindAndUnit {
  PoolKind kind;
  Bytes unit;
  friend std::ostream& operator<<(std::ostream& out, const KindAndUnit& tested) {
    return out << to_string(tested.kind) << " in units of " << format_bytes(tested.unit);
  }
};
inline constexpr KindAndUnit kUnpooledUnits{PoolKind::kUnpooled, kib(4)};
inline constexpr KindAndUnit kNaiveUnits{PoolKind::kNaive, kib(4)};
inline constexpr KindAndUnit kRoundUnits{PoolKind::kRound, kib(4)};
inline constexpr KindAndUnit kBestFitUnits{PoolKind::kBestFit, mib(4)};
inline constexpr KindAndUnit kPagedUnits{PoolKind::kPaged, kPage};
inline constexpr std::array kAllUnits{kUnpooledUnits, kNaiveUnits, kRoundUnits, kBestFitUnits,
                                      kPagedUnits};
/// Of kinds that reuse freed blocks.
inline constexpr std::array kKeepingUnits{kNaiveUnits, kRoundUnits, kBestFitUnits, kPagedUnits};
/// Of kinds that get and return whole segments.
inline constexpr std::array kSegmentUnits{kNaiveUnits, kRoundUnits, kBestFitUnits};

/// Names a suite's instances after their kinds.
[[nodiscard]] inline std::string kind_name(const ::testing::TestParamInfo<PoolKind>& info) {
  return std::string(to_string(info.param));
}
[[nodiscard]] inline std::string unit_name(const ::testing::TestParamInfo<KindAndUnit>& info) {
  return std::string(to_string(info.param.kind));
}

/// Checks that the reserved memory is what the upstream has given, segment by segment or page by
/// page.
inline void expect_given(const Pool& pool, FaultyUpstream& upstream) {
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.reserved.current, upstream.used());
  const FaultyPageSource* pages = upstream.pages();
  if (pool.options().kind.value == PoolKind::kPaged) {
    EXPECT_EQ(upstream.segments(), 0U);
    EXPECT_EQ(s.reserved.current, pages->page_size() * pages->created());
    EXPECT_EQ(s.mapped_pages - s.unmapped_pages, pages->mapped());
    return;
  }
  EXPECT_EQ(s.misses - s.releases, upstream.segments());
  EXPECT_EQ(s.mapped_pages + s.unmapped_pages, 0U);
  EXPECT_TRUE(pages == nullptr || pages->created() + pages->reserved().count == 0);
}

/// Checks that the accounting is consistent, and that the reserved memory is what the upstream has
/// given and within the budget.
inline void expect_statistics_agree(const Pool& pool, FaultyUpstream& upstream) {
  const Statistics s = pool.statistics();
  EXPECT_EQ(s.allocated.current + s.awaiting.current + s.cached.current, s.reserved.current);
  EXPECT_EQ(s.allocated.current + s.awaiting.current, s.held.current);
  EXPECT_LE(s.requested.current, s.allocated.current);
  EXPECT_LE(s.queued_at_growth, s.needed_at_growth);
  EXPECT_LE(s.needed_at_growth, s.reserved.highest());
  EXPECT_LE(s.reserved.peak, s.budget);
  EXPECT_LE(upstream.peak(), s.budget);
  expect_given(pool, upstream);
  for (const Gauge& gauge : {s.requested, s.allocated, s.awaiting, s.cached, s.reserved, s.held}) {
    EXPECT_LE(gauge.current, gauge.peak);
  }
}

/// Checks that the blocks that the pool lists are those that it counts, in segments without gaps.
/// Pages may be free without an address.
inline void expect_blocks_agree(const Pool& pool) {
  const Statistics s = pool.statistics();
  Bytes requested;
  std::map<PoolBlock::State, Bytes> by_state;
  std::uintptr_t end = 0;
  for (const PoolBlock& block : pool.blocks()) {
    EXPECT_GE(block.begin, end) << "they overlap, or are not sorted";
    EXPECT_TRUE(block.begins_segment || block.begin == end);
    EXPECT_NE(block.size, Bytes{0});
    by_state[block.state] += block.size;
    requested += block.requested;
    end = block.begin + block.size.count;
  }
  EXPECT_EQ(requested, s.requested.current);
  EXPECT_EQ(by_state[PoolBlock::State::kAllocated], s.allocated.current);
  EXPECT_EQ(by_state[PoolBlock::State::kAwaiting], s.awaiting.current);
  const Bytes cached = by_state[PoolBlock::State::kCached];
  if (pool.options().kind.value == PoolKind::kPaged) {
    EXPECT_LE(cached, s.cached.current);
  } else {
    EXPECT_EQ(cached, s.cached.current);
  }
}

/// Checks that the upstream has everything back: segments, pages and addresses.
inline void expect_all_back(FaultyUpstream& upstream) {
  EXPECT_EQ(upstream.used(), Bytes{0});
  EXPECT_EQ(upstream.segments(), 0U);
  EXPECT_EQ(upstream.returns(), 0);
  if (upstream.pages() == nullptr) return;
  EXPECT_EQ(upstream.pages()->created(), 0U);
  EXPECT_EQ(upstream.pages()->mapped(), 0U);
  EXPECT_EQ(upstream.pages()->reserved(), Bytes{0});
}

struct PoolFixture : ::testing::Test {
  [[nodiscard]] DeviceMemory memory() { return {upstream, progress}; }

  SimulatedUpstream raw{gib(1), kPage};
  FaultyUpstream upstream{raw};
  ManualProgress progress;
  const StreamId a = StreamId::next();
  const StreamId b = StreamId::next();
  const StreamId c = StreamId::next();
};

/// The same for one kind and its unit, with one name for each kind's calls to the upstream.
struct UnitFixture : PoolFixture, ::testing::WithParamInterface<KindAndUnit> {
  [[nodiscard]] bool is_paged() const { return GetParam().kind == PoolKind::kPaged; }
  [[nodiscard]] PoolOptions options(std::size_t units) const {
    return options_of(unit * units, GetParam().kind);
  }
  /// Number of calls that allocate segments or create pages.
  [[nodiscard]] std::uint64_t growths() {
    return upstream.calls() + upstream.pages()->create_calls();
  }
  /// Refuses coming calls that allocate segments or create pages.
  void refuse_growth(Fault fault) {
    is_paged() ? upstream.pages()->refuse_create(fault) : upstream.refuse_calls(fault);
  }
  void throw_growth(Fault fault) {
    is_paged() ? upstream.pages()->throw_create(fault) : upstream.throw_calls(fault);
  }
  /// Calls `act` with the requested size before each growth.
  void before_growth(const std::function<void(Bytes)>& act) {
    upstream.before_allocate = act;
    upstream.pages()->before_create = [act](std::size_t pages) { act(kPage * pages); };
  }
  /// Allocates `count` blocks of `size` on `stream`, each followed by a unit that stays, so that no
  /// two can be joined.
  std::vector<void*> take_apart(Pool& pool, std::size_t count, Bytes size, StreamId stream) {
    std::vector<void*> taken(count);
    for (void*& pointer : taken) {
      pointer = pool.allocate(size, stream);
      (void)pool.allocate(unit, stream);
    }
    return taken;
  }
  /// From now on `taken_from` lists what is taken from under free blocks, in order: segments
  /// returned to the upstream, pages moved.
  void watch_returns() {
    upstream.before_deallocate = [this](void* pointer, Bytes) { taken_from.push_back(pointer); };
    upstream.pages()->before_unmap = [this](std::span<const Mapping> mappings) {
      for (const Mapping& each : mappings) taken_from.push_back(each.address);
    };
  }

  const Bytes unit = GetParam().unit;
  std::vector<void*> taken_from;
};

}  // namespace weir::testing
