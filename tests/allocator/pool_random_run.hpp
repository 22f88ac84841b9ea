#pragma once

// A random run of one pool beside a trivial model of it: who holds what, which work may still touch
// which memory, and what is allocated. Every step is checked against the model.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/pool_fixture.hpp"

namespace weir::testing {

struct RandomRunOptions {
  PoolKind kind = PoolKind::kRound;
  RunningOut running_out{};
  bool points_are_entries = true;
  bool faults = false;  ///< of the upstream and of the device, now and then
  std::uint64_t seed = 0;
  int steps = 20'000;
  Bytes budget = kib(256);
};

class RandomRun {
 public:
  explicit RandomRun(const RandomRunOptions& options);
  void run();

 private:
  static constexpr std::size_t kStreams = 4;
  using Clock = std::array<std::uint64_t, kStreams>;  ///< a place on each stream

  /// All work that was ever enqueued for one piece of memory, by the last place on each stream.
  struct Memory {
    Clock uses{};
    Clock second_uses{};  ///< of its latest life, on streams other than its own
  };
  struct Live {
    Bytes block;
    Bytes requested;
    std::size_t home = 0;
    std::array<bool, kStreams> used_on{};
  };
  struct Freed {
    Bytes block;
    Clock points{};  ///< on each stream that it awaits; 0 where none
  };
  using Held = std::map<std::uintptr_t, Live>;

  void step();
  void allocate();
  void take_over(std::uintptr_t address, Bytes requested, std::size_t stream);
  void expect_nobody_else_has(std::uintptr_t address, Bytes block) const;
  void expect_work_is_ordered(const Memory& memory, std::size_t stream) const;
  void note_waits();
  void use_on_second_stream();
  void free_one();
  void break_something();
  void expect_model();
  void expect_awaiting();
  [[nodiscard]] std::size_t pick(std::size_t count) { return random_() % count; }
  [[nodiscard]] Held::iterator pick_live() {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(pick(live_.size())));
  }
  [[nodiscard]] std::uint64_t passed(std::size_t stream) const {
    return progress_.passed_by_device(streams_.at(stream));
  }
  [[nodiscard]] std::size_t index_of(StreamId stream) const {
    return static_cast<std::size_t>(std::ranges::find(streams_, stream) - streams_.begin());
  }

  const RandomRunOptions options_;
  std::mt19937_64 random_;
  SimulatedUpstream raw_{gib(1)};
  FaultyUpstream upstream_{raw_};
  ManualProgress progress_;
  Pool pool_;
  std::array<StreamId, kStreams> streams_;

  Held live_;
  std::unordered_map<std::uintptr_t, Memory> memory_;
  std::vector<Freed> freed_;
  Bytes allocated_;
  Bytes requested_;
  std::uint64_t served_ = 0;
  /// What is done before anything that is enqueued on a stream from now on, and how that grew: the
  /// clock from a place of the stream on.
  std::array<Clock, kStreams> after_{};
  std::array<std::vector<std::pair<std::uint64_t, Clock>>, kStreams> history_;
  std::size_t waits_seen_ = 0;
};

inline RandomRun::RandomRun(const RandomRunOptions& options)
    : options_(options),
      random_(options.seed),
      pool_({upstream_, progress_}, options_of(options.budget, options.kind)) {
  for (StreamId& stream : streams_) stream = StreamId::next();
  pool_.set_limits(options.budget, options.running_out);
  if (!options.points_are_entries) progress_.record_without_entries();
  upstream_.forget_returned();
}

inline void RandomRun::run() {
  for (int i = 0; i < options_.steps && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("step " + std::to_string(i));
    step();
    expect_model();
  }
}

inline void RandomRun::step() {
  const std::size_t what = pick(100);
  if (what < 38) return allocate();
  if (what < 68) return free_one();
  if (what < 78) return use_on_second_stream();
  if (what < 92) return progress_.advance(streams_.at(pick(kStreams)), 1 + pick(8));
  if (what < 94) {  // the program's own order between two streams
    const StreamId waiter = streams_.at(pick(kStreams));
    const StreamId other = streams_.at(pick(kStreams));
    progress_.fail_make_waits(Fault::never());
    if (waiter != other) progress_.make_wait(waiter, progress_.enqueue(other));
    return note_waits();
  }
  if (what < 97) {
    pool_.poll();
    return expect_awaiting();
  }
  if (what < 98) return (void)pool_.trim();
  if (options_.faults) break_something();
}

inline void RandomRun::break_something() {
  switch (pick(4)) {
    case 0:
      return upstream_.refuse_calls(Fault::at(1, 1 + pick(3)));
    case 1:
      return upstream_.throw_calls(Fault::at(1));
    case 2:
      return progress_.fail_records(Fault::at(1 + pick(3), 1 + pick(3)));
    default:
      return progress_.fail_make_waits(Fault::at(1));
  }
}

inline void RandomRun::allocate() {
  const std::size_t stream = pick(kStreams);
  const Bytes bytes{1 + pick(std::uint64_t{1} << (6 + pick(12)))};
  const Bytes block = *pool_.block_size(bytes);
  Attempt attempt;
  void* pointer = nullptr;
  try {
    pointer = pool_.try_allocate(bytes, streams_.at(stream), "random", attempt);
  } catch (const std::runtime_error&) {
    EXPECT_TRUE(options_.faults) << "nothing was broken on purpose";
  }
  note_waits();
  if (pointer == nullptr) {
    if (options_.running_out.wait && !options_.faults) {
      EXPECT_GT(allocated_ + block, options_.budget) << "failed, and there would have been room";
    }
    return;
  }
  take_over(reinterpret_cast<std::uintptr_t>(pointer), bytes, stream);
}

inline void RandomRun::take_over(std::uintptr_t address, Bytes requested, std::size_t stream) {
  const Bytes block = *pool_.block_size(requested);
  expect_nobody_else_has(address, block);
  Memory& memory = memory_[address];
  expect_work_is_ordered(memory, stream);
  memory.second_uses = {};
  memory.uses.at(stream) = progress_.enqueue(streams_.at(stream)).sequence;
  live_[address] = {.block = block, .requested = requested, .home = stream, .used_on = {}};
  allocated_ += block;
  requested_ += requested;
  ++served_;
}

inline void RandomRun::expect_nobody_else_has(std::uintptr_t address, Bytes block) const {
  const auto after = live_.lower_bound(address);
  if (after != live_.end()) {
    EXPECT_LE(address + block.count, after->first) << "in two hands";
  }
  if (after != live_.begin()) {
    const auto before = std::prev(after);
    EXPECT_LE(before->first + before->second.block.count, address) << "in two hands";
  }
}

inline void RandomRun::expect_work_is_ordered(const Memory& memory, std::size_t stream) const {
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (memory.second_uses.at(s) != 0) {
      EXPECT_GE(passed(s), memory.second_uses.at(s)) << "a second stream may still use it";
    }
    if (s == stream) continue;  // its own order
    EXPECT_GE(std::max(passed(s), after_.at(stream).at(s)), memory.uses.at(s))
        << "work on stream " << s << " may still touch what stream " << stream << " was given";
  }
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

inline void RandomRun::use_on_second_stream() {
  if (live_.empty()) return;
  const auto& [address, live] = *pick_live();
  const std::size_t stream = pick(kStreams);
  pool_.record_use(reinterpret_cast<void*>(address), streams_.at(stream));
  Memory& memory = memory_[address];
  memory.uses.at(stream) = progress_.enqueue(streams_.at(stream)).sequence;
  if (stream != live.home) {
    memory.second_uses.at(stream) = memory.uses.at(stream);
    live_[address].used_on.at(stream) = true;
  }
}

inline void RandomRun::free_one() {
  if (live_.empty()) return;
  const auto place = pick_live();
  const std::uintptr_t address = place->first;
  Live live = place->second;
  std::size_t stream = live.home;
  if (pick(10) == 0) {
    stream = pick(kStreams);
    Memory& memory = memory_[address];
    memory.uses.at(stream) = progress_.enqueue(streams_.at(stream)).sequence;
    if (stream != live.home) {
      memory.second_uses.at(stream) = memory.uses.at(stream);
      live.used_on.at(stream) = true;
    }
  }
  live_.erase(place);
  pool_.deallocate(reinterpret_cast<void*>(address), streams_.at(stream));
  allocated_ -= live.block;
  requested_ -= live.requested;
  Freed freed{.block = live.block, .points = {}};
  live.used_on.at(live.home) = options_.kind == PoolKind::kUnpooled;
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (live.used_on.at(s)) freed.points.at(s) = progress_.tail(streams_.at(s));
  }
  freed_.push_back(freed);
}

inline void RandomRun::expect_model() {
  expect_books(pool_, upstream_);
  const Statistics s = pool_.statistics();
  EXPECT_EQ(s.allocated.current, allocated_);
  EXPECT_EQ(s.requested.current, requested_);
  EXPECT_EQ(s.hits + s.misses + s.handovers, served_);
  EXPECT_TRUE(options_.running_out.wait || s.waits == 0);
  EXPECT_TRUE(options_.running_out.hand_over || s.handovers == 0);
}

/// Right after a poll: what awaits is what was freed and has a point that the device has not
/// passed.
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
    EXPECT_GE(pool_.statistics().awaiting.current, awaiting);
  } else {
    EXPECT_EQ(pool_.statistics().awaiting.current, awaiting);
  }
}

}  // namespace weir::testing
