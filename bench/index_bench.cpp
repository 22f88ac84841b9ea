// What a pool with very many cached blocks, or after very many streams, takes for one request: a
// miss that nothing can serve, which looks at everything that could, and a hit.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "table.hpp"

namespace weir::bench {
namespace {

/// A device of one counter, which is asked for nothing that takes time.
class OneCounter final : public Progress {
 public:
  void pass_all() { passed_ = last_; }

  [[nodiscard]] Point record(StreamId stream) override { return {stream, ++last_}; }
  [[nodiscard]] std::uint64_t passed(StreamId /*stream*/) override { return passed_; }
  [[nodiscard]] bool wait(Point /*point*/, std::stop_token /*stop*/) override {
    pass_all();
    return true;
  }
  void make_wait(StreamId /*waiter*/, Point /*point*/) override {}

 private:
  std::uint64_t last_ = 0;
  std::uint64_t passed_ = 0;
};

constexpr Bytes kHole = mib(2);

/// A pool whose budget is used up.
class FullPool {
 public:
  /// `cached` free blocks, each between two that stay.
  FullPool(PoolKind kind, std::uint64_t cached)
      : upstream_(kHole * (2 * cached)), pool_({upstream_, progress_}, options_of(kind)) {
    pool_.set_limits(upstream_.capacity(), {.hand_over = false, .wait = false});
    std::vector<void*> blocks(2 * cached);
    for (void*& block : blocks) block = pool_.allocate(kHole, kStream);
    for (std::size_t i = 0; i < blocks.size(); i += 2) pool_.deallocate(blocks[i], kStream);
    progress_.pass_all();
    pool_.poll();
  }
  /// So many streams allocate, free and end, `at_a_time` of them.
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
  /// A request for more than all that is cached.
  void miss() {
    Attempt attempt;
    const Bytes more = pool_.statistics().cached.current + kHole;
    benchmark::DoNotOptimize(pool_.try_allocate(more, kStream, {}, attempt));
  }
  void hit() { pool_.deallocate(pool_.allocate(kHole, kStream), kStream); }

 private:
  static PoolOptions options_of(PoolKind kind) {
    PoolOptions options;
    options.kind = kind;
    options.segment = kHole;
    return options;
  }

  const StreamId kStream = StreamId::next();
  SimulatedUpstream upstream_;
  OneCounter progress_;
  Pool pool_;
};

void add_miss(Table& table, PoolKind kind, std::uint64_t cached) {
  const std::string what = "index/miss/" + std::string(to_string(kind)) + "/cached:";
  const std::string name = what + std::to_string(cached);
  benchmark::RegisterBenchmark(name.c_str(), [kind, cached](benchmark::State& state) {
    FullPool pool(kind, cached);
    for ([[maybe_unused]] auto _ : state) pool.miss();
  });
  table.add({.figure = name, .against = cached == 1000 ? "" : what + "1000"});
}

void add_hit(Table& table, PoolKind kind, std::uint64_t at_a_time) {
  const std::string what = "index/hit/" + std::string(to_string(kind)) + "/streams_gone:";
  const bool is_after = at_a_time != 0;
  const std::string name =
      what + (is_after ? "100000/at_a_time:" + std::to_string(at_a_time) : "0");
  benchmark::RegisterBenchmark(name.c_str(), [kind, at_a_time](benchmark::State& state) {
    FullPool pool(kind, 2000);
    if (at_a_time != 0) pool.use(100'000, at_a_time);
    for ([[maybe_unused]] auto _ : state) pool.hit();
  });
  table.add(
      {.figure = name, .against = is_after ? what + "0" : "", .most_ratio = is_after ? 1.2 : 0});
}

}  // namespace

void add_index(Table& table) {
  for (const PoolKind kind : {PoolKind::kRound, PoolKind::kBestFit, PoolKind::kPaged}) {
    for (const std::uint64_t cached : {1000U, 10'000U, 100'000U, 1'000'000U}) {
      add_miss(table, kind, cached);
    }
    for (const std::uint64_t at_a_time : {0U, 1U, 1000U}) add_hit(table, kind, at_a_time);
  }
}

}  // namespace weir::bench
