#pragma once

// A random run of one pool against a trivial model: who holds what, which work may still touch
// which memory, and what is allocated. Every step is checked against the model. One long file,
// because every step updates and every check reads the same state.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "allocator/index/segment_index.hpp"
#include "allocator/memory/page_source_kit.hpp"
#include "allocator/pool_fixture.hpp"
#include "allocator/random_memory.hpp"

namespace weir::testing {

struct RandomRunOptions {
  PoolKind kind = PoolKind::kRound;
  RunningOut running_out{};
  bool points_are_entries = true;
  bool faults = false;  ///< of the upstream and of the device, now and then
  std::uint64_t seed = 0;
  int steps = 20'000;
  Bytes budget = kib(256);
  unsigned scale = 0;             ///< doublings of all sizes; with any, pages are of 64 KiB
  Bytes segment = mib(2);         ///< of best_fit
  PagedUpstream* over = nullptr;  ///< source of the pool's memory, in place of simulated addresses
  /// Writes to every block and checks its contents until it is freed.
  bool touch = false;
  /// Injects a fault before the first step, in place of the random ones of `faults`.
  std::function<void(FaultyUpstream&)> arm{};
  /// Called when no more faults are due, before everything is freed.
  std::function<void(FaultyUpstream&)> mend{};
};

class RandomRun {
 public:
  explicit RandomRun(const RandomRunOptions& options);
  ~RandomRun() {
    if (pool_ != nullptr) watch_nothing();  // it failed half way
  }
  RandomRun(const RandomRun&) = delete;
  RandomRun& operator=(const RandomRun&) = delete;
  /// Runs all steps, frees everything, and destroys the pool.
  void run();
  [[nodiscard]] std::uint64_t aliases_seen() const { return aliases_seen_; }

 private:
  static constexpr std::size_t kStreams = kRandomStreams;

  struct Live {
    Bytes block;
    Bytes requested;
    std::size_t home = 0;
    std::array<bool, kStreams> used_on{};
    unsigned char stamp = 0;  ///< written to some of its bytes
  };
  struct Freed {
    Bytes block;
    Clock points{};  ///< on each stream that it awaits; 0 where none
  };
  using Held = std::map<std::uintptr_t, Live>;

  void step();
  void allocate();
  /// Whether a request of `block` must be served once the device has passed everything.
  [[nodiscard]] bool has_room_for(Bytes block);
  [[nodiscard]] bool has_gap_for(Bytes block) const;
  [[nodiscard]] bool has_pages_for(Bytes block);
  void take_over(std::uintptr_t address, Bytes requested, std::size_t stream);
  void expect_aliases_are_over(AddressRange range, std::size_t stream);
  /// Calls `visit` with addresses of a block: its ends, and some of each page between.
  static void visit_block(std::uintptr_t address, Bytes size,
                          const std::function<void(void*)>& visit);
  void stamp(std::uintptr_t address, Live& live);
  void expect_stamped(std::uintptr_t address, const Live& live);
  void expect_nobody_has(AddressRange where) const;
  void expect_work_is_ordered(const Work& work, std::size_t stream) const;
  /// Checks that nobody has the range and that the device has passed every free in it.
  void expect_device_is_done(AddressRange where);
  void note_waits();
  void note_use(std::uintptr_t address, Live& live, std::size_t stream);
  void use_on_some_stream();
  void free_one();
  void break_something();
  void mend_everything();
  void end();
  void watch_upstream();
  void watch_nothing();
  void expect_model();
  void expect_awaiting();
  [[nodiscard]] std::size_t pick(std::size_t count) { return random_() % count; }
  [[nodiscard]] Held::iterator pick_live() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(pick(live_.size())));
  }
  [[nodiscard]] std::uint64_t passed(std::size_t stream) const {
    return progress_.passed_by_device(streams_.at(stream));
  }
  [[nodiscard]] bool device_is_idle() const {
    return std::ranges::all_of(streams_, [this](StreamId stream) {
      return progress_.passed_by_device(stream) == progress_.tail(stream);
    });
  }
  [[nodiscard]] Bytes simulated_page() const { return options_.scale == 0 ? kPage : kib(64); }
  /// For an upstream that has pages.
  [[nodiscard]] static PoolOptions pool_options(const RandomRunOptions& options) {
    PoolOptions pool = options_of(options.budget, options.kind);
    pool.segment = options.segment;
    return pool;
  }
  [[nodiscard]] Bytes raw_page() { return upstream_.pages()->page_size(); }
  [[nodiscard]] bool is_paged() const { return options_.kind == PoolKind::kPaged; }
  [[nodiscard]] std::size_t index_of(StreamId stream) const {
    return static_cast<std::size_t>(std::ranges::find(streams_, stream) - streams_.begin());
  }

  const RandomRunOptions options_;
  std::mt19937_64 random_;
  SimulatedUpstream raw_;
  FaultyUpstream upstream_;
  ManualProgress progress_;
  std::unique_ptr<Pool> pool_;
  std::array<StreamId, kStreams> streams_;

  Held live_;
  WorkByAddress work_;
  std::map<std::uintptr_t, Bytes> segments_;
  std::vector<Freed> freed_;
  Bytes allocated_;
  Bytes requested_;
  std::uint64_t served_ = 0;
  std::uint64_t aliases_seen_ = 0;  ///< other mappings of the pages of blocks handed out
  /// What precedes all future work of a stream, and its history: the clock from a place in the
  /// stream on.
  std::array<Clock, kStreams> after_{};
  std::array<std::vector<std::pair<std::uint64_t, Clock>>, kStreams> history_;
  std::size_t waits_seen_ = 0;
};

inline RandomRun::RandomRun(const RandomRunOptions& options)
    : options_(options),
      random_(options.seed),
      raw_(gib(2), simulated_page()),
      upstream_(options.over != nullptr ? options.over->upstream() : raw_),
      pool_(std::make_unique<Pool>(DeviceMemory{upstream_, progress_}, pool_options(options))) {
  for (StreamId& stream : streams_) stream = StreamId::next();
  pool_->set_limits(options.budget, options.running_out);
  if (!options.points_are_entries) progress_.record_without_entries();
  upstream_.forget_returned();
  watch_upstream();
}

inline void RandomRun::watch_upstream() {
  const auto number = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address); };
  upstream_.after_allocate = [=, this](void* pointer, Bytes size) {
    segments_[number(pointer)] = size;
  };
  upstream_.before_deallocate = [=, this](void* pointer, Bytes size) {
    expect_device_is_done({number(pointer), number(pointer) + size.count});
    segments_.erase(number(pointer));
  };
  if (upstream_.pages() == nullptr) return;
  upstream_.pages()->before_map = [=, this](std::span<const Mapping> mappings) {
    const std::uint64_t page = raw_page().count;
    for (const Mapping& each : mappings) {
      expect_nobody_has({number(each.address), number(each.address) + page});
    }
  };
  upstream_.pages()->before_unmap = [=, this](std::span<const Mapping> mappings) {
    const std::uint64_t page = raw_page().count;
    for (const Mapping& each : mappings) {
      expect_device_is_done({number(each.address), number(each.address) + page});
    }
  };
}

inline void RandomRun::watch_nothing() {
  upstream_.after_allocate = nullptr;
  upstream_.before_deallocate = nullptr;
  if (upstream_.pages() == nullptr) return;
  upstream_.pages()->before_map = nullptr;
  upstream_.pages()->before_unmap = nullptr;
}

inline void RandomRun::run() {
  if (options_.arm) options_.arm(upstream_);
  for (int i = 0; i < options_.steps && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    step();
    expect_model();
  }
  if (!::testing::Test::HasFailure()) end();
}

inline void RandomRun::end() {
  mend_everything();
  while (!live_.empty()) free_one();
  // A point that could not be recorded at first is recorded stream by stream, as each is passed.
  for (std::size_t i = 0; i <= kStreams; ++i) {
    for (const StreamId stream : streams_) progress_.pass_all(stream);
    pool_->trim();
  }
  const Statistics s = pool_->statistics();
  EXPECT_EQ(s.reserved.current, Bytes{0}) << "lost, or kept for nobody";
  EXPECT_EQ(s.requested.current, Bytes{0});
  expect_model();
  // No claim on the budget remains.
  void* const all = pool_->allocate({std::bit_floor(options_.budget.count)}, streams_.front());
  pool_->deallocate(all, streams_.front());
  pool_.reset();
  expect_all_back(upstream_);
}

inline void RandomRun::step() {
  const std::size_t what = pick(100);
  if (what < 38) return allocate();
  if (what < 68) return free_one();
  if (what < 78) return use_on_some_stream();
  if (what < 91) return progress_.advance(streams_.at(pick(kStreams)), 1 + pick(8));
  if (what < 92) {  // a moment at which fitting requests must be served
    for (const StreamId stream : streams_) progress_.pass_all(stream);
    return allocate();
  }
  if (what < 94) {  // the program's own order between two streams
    const StreamId waiter = streams_.at(pick(kStreams));
    const StreamId other = streams_.at(pick(kStreams));
    progress_.fail_make_waits(Fault::never());
    if (waiter != other) progress_.make_wait(waiter, progress_.enqueue(other));
    return note_waits();
  }
  if (what < 97) {
    pool_->poll();
    return expect_awaiting();
  }
  if (what < 98) return (void)pool_->trim();
  if (options_.faults && !options_.arm) break_something();
}

inline void RandomRun::break_something() {
  switch (pick(is_paged() ? 9 : 4)) {
    case 0:
      return upstream_.refuse_calls(Fault::at(1, 1 + pick(3)));
    case 1:
      return upstream_.throw_calls(Fault::at(1));
    case 2:
      return progress_.fail_records(Fault::at(1 + pick(3), 1 + pick(3)));
    case 3:
      return progress_.fail_make_waits(Fault::at(1));
    // The n-th page: half-finished work must continue from there or be undone.
    case 4:
      return upstream_.pages()->refuse_create(Fault::at(1 + pick(8), 1 + pick(3)));
    case 5:
      return upstream_.pages()->throw_create(Fault::at(1 + pick(8)));
    case 6:
      return upstream_.pages()->refuse_map(Fault::at(1 + pick(8), 1 + pick(3)));
    case 7:
      return upstream_.pages()->refuse_unmap(Fault::at(1 + pick(8), 1 + pick(3)));
    default:
      return upstream_.pages()->refuse_reserve(Fault::at(1));
  }
}

inline void RandomRun::mend_everything() {
  upstream_.refuse_calls(Fault::never());
  upstream_.throw_calls(Fault::never());
  progress_.fail_records(Fault::never());
  progress_.fail_make_waits(Fault::never());
  if (options_.mend) options_.mend(upstream_);
  if (upstream_.pages() == nullptr) return;
  FaultyPageSource& pages = *upstream_.pages();
  pages.refuse_create(Fault::never());
  pages.throw_create(Fault::never());
  pages.refuse_map(Fault::never());
  pages.refuse_unmap(Fault::never());
  pages.refuse_reserve(Fault::never());
}

inline void RandomRun::allocate() {
  const std::size_t stream = pick(kStreams);
  const Bytes bytes{1 + pick(std::uint64_t{1} << (6 + pick(12) + options_.scale))};
  const bool idle = device_is_idle();
  Attempt attempt;
  void* pointer = nullptr;
  try {
    pointer = pool_->try_allocate(bytes, streams_.at(stream), "random", attempt);
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(options_.faults) << "nothing was broken on purpose";
  }
  note_waits();
  if (pointer != nullptr) {
    return take_over(reinterpret_cast<std::uintptr_t>(pointer), bytes, stream);
  }
  if ((!options_.running_out.wait && !idle) || options_.faults) return;
  EXPECT_FALSE(has_room_for(*pool_->block_size(bytes)))
      << "failed to serve " << bytes << ", and there would have been room";
}

inline bool RandomRun::has_room_for(Bytes block) {
  switch (options_.kind) {
    case PoolKind::kBestFit:
      return has_gap_for(block);
    case PoolKind::kPaged:
      return has_pages_for(block);
    default:
      return allocated_ + block <= options_.budget;
  }
}

/// The free memory between two blocks is at most three pieces: the rest of a run of small blocks at
/// either end, and a large piece between. Free segments are returned.
inline bool RandomRun::has_gap_for(Bytes block) const {
  const Bytes ends = block <= HeapIndex::kSmall ? block : SegmentIndex::run_size(options_.budget);
  const Bytes needed = block + ends * 2;
  Bytes kept;
  for (const auto& [begin, size] : segments_) {
    std::uintptr_t at = begin;
    bool is_kept = false;
    auto live = live_.lower_bound(begin);
    for (; live != live_.end() && live->first < begin + size.count; ++live) {
      if (live->first - at >= needed.count) return true;
      at = live->first + live->second.block.count;
      is_kept = true;
    }
    if (is_kept && begin + size.count - at >= needed.count) return true;
    if (is_kept) kept += size;
  }
  return kept + block <= options_.budget;
}

/// Every page without a live byte can move to where it is needed.
inline bool RandomRun::has_pages_for(Bytes block) {
  const std::uint64_t page = raw_page().count;
  std::set<std::uint64_t> pinned;
  for (const auto& [address, live] : live_) {
    for (std::uint64_t p = address / page; p * page < address + live.block.count; ++p) {
      pinned.insert(p);
    }
  }
  return pinned.size() + (block.count + page - 1) / page <= options_.budget.count / page;
}

inline void RandomRun::take_over(std::uintptr_t address, Bytes requested, std::size_t stream) {
  const Bytes block = *pool_->block_size(requested);
  const AddressRange range{address, address + block.count};
  expect_nobody_has(range);
  work_.visit(range, [&](const Work& work) { expect_work_is_ordered(work, stream); });
  expect_aliases_are_over(range, stream);
  Work& work = work_.join(range);
  work.second_uses = {};
  work.uses.at(stream) = progress_.enqueue(streams_.at(stream)).sequence;
  Live& live = live_[address];
  live = {.block = block, .requested = requested, .home = stream, .used_on = {}};
  stamp(address, live);
  allocated_ += block;
  requested_ += requested;
  ++served_;
}

/// Checks the same for the other mappings of its pages: nobody has a byte by two addresses, and the
/// work on the other address precedes what `stream` does here.
inline void RandomRun::expect_aliases_are_over(AddressRange range, std::size_t stream) {
  if (!is_paged()) return;
  const std::uint64_t page = raw_page().count;
  for (std::uintptr_t at = range.begin / page * page; at < range.end; at += page) {
    upstream_.pages()->for_each_alias(at, [&](std::uintptr_t other) {
      ++aliases_seen_;
      const AddressRange same{std::max(range.begin, at) - at + other,
                              std::min(range.end, at + page) - at + other};
      expect_nobody_has(same);
      work_.visit(same, [&](const Work& work) { expect_work_is_ordered(work, stream); });
    });
  }
}

inline void RandomRun::visit_block(std::uintptr_t address, Bytes size,
                                   const std::function<void(void*)>& visit) {
  constexpr std::uint64_t kStride = kib(512).count;
  for (std::uint64_t at = 0; at < size.count; at += kStride) {
    visit(reinterpret_cast<void*>(address + at));
  }
  visit(reinterpret_cast<void*>(address + size.count - 1));
}

inline void RandomRun::stamp(std::uintptr_t address, Live& live) {
  if (!options_.touch) return;
  live.stamp = static_cast<unsigned char>(served_);
  visit_block(address, live.block, [&](void* at) {
    EXPECT_TRUE(options_.over->write(at, live.stamp, 1)) << "no memory is there";
  });
}

inline void RandomRun::expect_stamped(std::uintptr_t address, const Live& live) {
  if (!options_.touch) return;
  visit_block(address, live.block, [&](void* at) {
    EXPECT_EQ(options_.over->read(at, 1), std::vector<unsigned char>{live.stamp})
        << "somebody else wrote here";
  });
}

inline void RandomRun::expect_nobody_has(AddressRange where) const {
  const auto after = live_.lower_bound(where.begin);
  if (after != live_.end()) {
    EXPECT_LE(where.end, after->first) << "in two hands";
  }
  if (after != live_.begin()) {
    const auto before = std::prev(after);
    EXPECT_LE(before->first + before->second.block.count, where.begin) << "in two hands";
  }
}

inline void RandomRun::expect_work_is_ordered(const Work& work, std::size_t stream) const {
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (work.second_uses.at(s) != 0) {
      EXPECT_GE(passed(s), work.second_uses.at(s)) << "a second stream may still use it";
    }
    if (s == stream) continue;  // its own order
    EXPECT_GE(std::max(passed(s), after_.at(stream).at(s)), work.uses.at(s))
        << "work on stream " << s << " may still touch what stream " << stream << " was given";
  }
}

inline void RandomRun::expect_device_is_done(AddressRange where) {
  expect_nobody_has(where);
  work_.visit(where, [&](const Work& work) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      EXPECT_GE(passed(s), work.uses.at(s)) << "given back, and stream " << s << " may touch it";
      EXPECT_GE(passed(s), work.frees.at(s)) << "given back before its free on stream " << s;
    }
  });
}

/// Follows the waits on the device that were made since the last call, at most one per stream.
inline void RandomRun::note_waits() {
  std::vector<ManualProgress::Dependency> made;
  progress_.dependencies_since(waits_seen_, made);
  waits_seen_ += made.size();
  for (const auto& [waiter, point] : made) {
    const std::size_t to = index_of(waiter);
    const std::size_t from = index_of(point.stream);
    const auto& history = history_.at(from);
    const auto later = std::ranges::upper_bound(history, point.sequence, {},
                                                [](const auto& entry) { return entry.first; });
    Clock known = later == history.begin() ? Clock{} : std::prev(later)->second;
    known.at(from) = point.sequence;
    Clock& after = after_.at(to);
    for (std::size_t s = 0; s < kStreams; ++s) after.at(s) = std::max(after.at(s), known.at(s));
    history_.at(to).emplace_back(progress_.tail(waiter), after);
  }
}

inline void RandomRun::note_use(std::uintptr_t address, Live& live, std::size_t stream) {
  Work& work = work_.at(address);
  work.uses.at(stream) = progress_.enqueue(streams_.at(stream)).sequence;
  if (stream == live.home) return;
  work.second_uses.at(stream) = work.uses.at(stream);
  live.used_on.at(stream) = true;
}

inline void RandomRun::use_on_some_stream() {
  if (live_.empty()) return;
  auto& [address, live] = *pick_live();
  const std::size_t stream = pick(kStreams);
  pool_->record_use(reinterpret_cast<void*>(address), streams_.at(stream));
  note_use(address, live, stream);
}

inline void RandomRun::free_one() {
  if (live_.empty()) return;
  const auto place = pick_live();
  const std::uintptr_t address = place->first;
  Live live = place->second;
  expect_stamped(address, live);
  std::size_t stream = live.home;
  if (pick(10) == 0) {
    stream = pick(kStreams);
    note_use(address, live, stream);
  }
  live_.erase(place);
  Work& work = work_.at(address);
  Freed freed{.block = live.block, .points = {}};
  for (std::size_t s = 0; s < kStreams; ++s) {
    // Or later, where it cannot be recorded now.
    const std::uint64_t point =
        progress_.tail(streams_.at(s)) + (options_.points_are_entries ? 1 : 0);
    if (live.used_on.at(s)) freed.points.at(s) = point;
    if (live.used_on.at(s) || s == live.home) work.frees.at(s) = point;
  }
  if (options_.kind == PoolKind::kUnpooled) freed.points.at(live.home) = work.frees.at(live.home);
  freed_.push_back(freed);
  pool_->deallocate(reinterpret_cast<void*>(address), streams_.at(stream));
  allocated_ -= live.block;
  requested_ -= live.requested;
}

inline void RandomRun::expect_model() {
  expect_statistics_agree(*pool_, upstream_);
  const Statistics s = pool_->statistics();
  EXPECT_EQ(s.allocated.current, allocated_);
  EXPECT_EQ(s.requested.current, requested_);
  EXPECT_EQ(s.hits + s.misses + s.handovers, served_);
  EXPECT_TRUE(options_.running_out.wait || s.waits == 0);
  EXPECT_TRUE(options_.running_out.hand_over || s.handovers == 0);
}

/// Right after a poll: awaiting memory is freed memory whose point the device has not passed.
inline void RandomRun::expect_awaiting() {
  std::erase_if(freed_, [this](const Freed& freed) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (freed.points.at(s) > passed(s)) return false;
    }
    return true;
  });
  Bytes awaiting;
  for (const Freed& freed : freed_) awaiting += freed.block;
  if (options_.faults) {
    // A point that could not be recorded at first is later than the model's.
    EXPECT_GE(pool_->statistics().awaiting.current, awaiting);
  } else {
    EXPECT_EQ(pool_->statistics().awaiting.current, awaiting);
  }
}

}  // namespace weir::testing
