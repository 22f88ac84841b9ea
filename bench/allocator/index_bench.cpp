// Measures one request of a pool with very many cached blocks, or after very many streams: a miss,
// which examines every candidate, and a hit.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "bench/shared/table.hpp"
#include "tests/support/one_counter.hpp"

namespace weir::bench {
namespace {

constexpr Bytes kHole = mib(2);

/// Whether the device has passed the free blocks, so that any stream may take them.
enum class Device : std::uint8_t { kPassed, kBehind };

/// A pool with an exhausted budget.
class FullPool {
 public:
  /// Makes `cached` free blocks, each between two that stay allocated.
  FullPool(PoolKind kind, std::uint64_t cached, Device device)
      : upstream_(kHole * (2 * cached)), pool_({upstream_, progress_}, options_of(kind)) {
    pool_.set_limits(upstream_.capacity(), {.hand_over = false, .wait = false});
    std::vector<void*> blocks(2 * cached);
    for (void*& block : blocks) block = pool_.allocate(kHole, stream_);
    for (std::size_t i = 0; i < blocks.size(); i += 2) pool_.deallocate(blocks[i], stream_);
    if (device == Device::kPassed) progress_.pass_all();
    pool_.poll();
  }
  /// Lets this many streams allocate, free and end, `at_a_time` of them together.
  void use(std::uint64_t streams, std::uint64_t at_a_time) {
    std::vector<std::pair<void*, StreamId>> held(at_a_time);
    for (std::uint64_t done = 0; done < streams; done += at_a_time) {
      for (auto& [pointer, stream] : held) {
        stream = StreamId::next();
        pointer = pool_.allocate(kHole, stream);
      }
      for (const auto& [pointer, stream] : held) pool_.deallocate(pointer, stream);
      progress_.pass_all();
      pool_.poll();
    }
  }
  /// Requests more than all cached memory.
  void miss() { ask(pool_.statistics().cached.current + kHole); }
  /// Requests slightly more than the size of each cached block.
  void miss_narrowly() { ask(kHole + Bytes{512}); }
  void hit() { pool_.deallocate(pool_.allocate(kHole, stream_), stream_); }

 private:
  void ask(Bytes size) {
    Attempt attempt;
    benchmark::DoNotOptimize(pool_.try_allocate(size, stream_, {}, attempt));
  }
  static PoolOptions options_of(PoolKind kind) {
    PoolOptions options;
    options.kind = kind;
    options.segment = kHole;
    return options;
  }

  const StreamId stream_ = StreamId::next();
  SimulatedUpstream upstream_;
  testing::OneCounter progress_;
  Pool pool_;
};

/// The allowed ratio of a miss with any number of blocks to one with 1,000.
constexpr double kFewTimes = 4;

void add_miss_row(Table& table, const std::string& what, std::uint64_t blocks) {
  const bool is_first = blocks == 1000;
  table.add({.figure = what + std::to_string(blocks),
             .against = is_first ? "" : what + "1000",
             .most_ratio = is_first ? 0 : kFewTimes});
}

void add_miss(Table& table, PoolKind kind, std::uint64_t blocks, Device device) {
  const std::string what = "index/miss/" + std::string(to_string(kind)) +
                           (device == Device::kPassed ? "/cached:" : "/unpassed:");
  const std::string name = what + std::to_string(blocks);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    FullPool pool(kind, blocks, device);
    for ([[maybe_unused]] auto _ : state) pool.miss();
  });
  add_miss_row(table, what, blocks);
}

/// All blocks are in the request's bin, and each is too small.
void add_narrow_miss(Table& table, std::uint64_t blocks) {
  const std::string what = "index/miss/best_fit/one_bin:";
  const std::string name = what + std::to_string(blocks);
  benchmark::RegisterBenchmark(name.c_str(), [blocks](benchmark::State& state) {
    FullPool pool(PoolKind::kBestFit, blocks, Device::kBehind);
    for ([[maybe_unused]] auto _ : state) pool.miss_narrowly();
  });
  add_miss_row(table, what, blocks);
}

/// `streams` have ended before, `at_a_time` of them together.
void add_hit(Table& table, PoolKind kind, std::uint64_t streams, std::uint64_t at_a_time) {
  const std::string what = "index/hit/" + std::string(to_string(kind)) + "/streams_gone:";
  const bool is_after = streams != 0;
  const std::string name =
      what + std::to_string(streams) + (is_after ? "/at_a_time:" + std::to_string(at_a_time) : "");
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    FullPool pool(kind, 2000, Device::kPassed);
    if (is_after) pool.use(streams, at_a_time);
    for ([[maybe_unused]] auto _ : state) pool.hit();
  });
  table.add(
      {.figure = name, .against = is_after ? what + "0" : "", .most_ratio = is_after ? 1.2 : 0});
}

}  // namespace

void add_index(Table& table) {
  constexpr std::array<std::uint64_t, 4> kBlocks = {1000, 10'000, 100'000, 1'000'000};
  for (const PoolKind kind :
       {PoolKind::kNaive, PoolKind::kRound, PoolKind::kBestFit, PoolKind::kPaged}) {
    for (const Device device : {Device::kPassed, Device::kBehind}) {
      for (const std::uint64_t blocks : kBlocks) add_miss(table, kind, blocks, device);
    }
    add_hit(table, kind, 0, 0);
    add_hit(table, kind, 1000, 1);
    add_hit(table, kind, 100'000, 1);
    add_hit(table, kind, 100'000, 1000);
  }
  for (const std::uint64_t blocks : kBlocks) add_narrow_miss(table, blocks);
}

}  // namespace weir::bench
