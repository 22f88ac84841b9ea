// Random use by real threads on real memory. Stamps in the blocks show who overwrites another's;
// the thread sanitizer shows what the pool forgets to lock.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/pool_fixture.hpp"
#include "support/random_seed.hpp"

namespace weir {
namespace {

constexpr std::size_t kThreads = 4;

/// A device of counters that orders nothing between threads, so that the sanitizer sees only the
/// pool's own synchronization.
class RelaxedProgress final : public Progress {
 public:
  RelaxedProgress() {
    for (StreamId& id : ids_) id = StreamId::next();
  }
  [[nodiscard]] StreamId stream(std::size_t index) const { return ids_.at(index); }
  void pass_all(StreamId stream) { raise(stream, tail(stream).load(std::memory_order_relaxed)); }

  [[nodiscard]] Point record(StreamId stream) override {
    return {stream, tail(stream).fetch_add(1, std::memory_order_relaxed) + 1};
  }
  [[nodiscard]] std::uint64_t passed(StreamId stream) override {
    return passed_.at(index_of(stream)).load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool wait(Point point, const WaitLimit& /*limit*/) override {
    raise(point.stream, point.sequence);
    return true;
  }
  void make_wait(StreamId /*waiter*/, Point /*point*/) override {}

 private:
  [[nodiscard]] std::size_t index_of(StreamId stream) const {
    return static_cast<std::size_t>(std::ranges::find(ids_, stream) - ids_.begin());
  }
  std::atomic<std::uint64_t>& tail(StreamId stream) { return tails_.at(index_of(stream)); }
  void raise(StreamId stream, std::uint64_t to) {
    std::atomic<std::uint64_t>& passed = passed_.at(index_of(stream));
    std::uint64_t now = passed.load(std::memory_order_relaxed);
    while (now < to && !passed.compare_exchange_weak(now, to, std::memory_order_relaxed)) {
    }
  }

  std::array<StreamId, kThreads> ids_;
  std::array<std::atomic<std::uint64_t>, kThreads> tails_{};
  std::array<std::atomic<std::uint64_t>, kThreads> passed_{};
};

struct Held {
  std::byte* pointer = nullptr;
  std::size_t size = 0;
  std::byte stamp{};
};

/// Where threads leave blocks for each other to free.
class Exchange {
 public:
  void swap(Held& held) {
    const std::lock_guard lock(mutex_);
    std::swap(held, box_);
  }

 private:
  std::mutex mutex_;
  Held box_;
};

void free_checked(Pool& pool, const Held& held, StreamId stream) {
  for (const std::size_t at : {std::size_t{0}, held.size / 2, held.size - 1}) {
    EXPECT_EQ(held.pointer[at], held.stamp) << "somebody else wrote here";
  }
  pool.deallocate(held.pointer, stream);
}

struct ThreadsRun {
  PoolKind kind;
  RunningOut running_out;
  std::uint64_t seed;
  int steps = 4000;
  unsigned scale = 0;  ///< doublings of all sizes
};

void work(Pool& pool, RelaxedProgress& progress, Exchange& exchange, std::size_t thread,
          const ThreadsRun& run) {
  std::mt19937_64 random(run.seed + thread);
  const StreamId own = progress.stream(thread);
  std::vector<Held> held;
  const auto free_at = [&](std::size_t i) {
    free_checked(pool, held.at(i), own);
    held.at(i) = held.back();
    held.pop_back();
  };
  for (int i = 0; i < run.steps; ++i) {
    const std::uint64_t what = random() % 100;
    if (what < 45) {
      const std::size_t size = 1 + random() % (std::uint64_t{1} << (4 + random() % 11 + run.scale));
      Attempt attempt;
      void* pointer = pool.try_allocate({size}, own, "random", attempt);
      if (pointer == nullptr) {
        while (!held.empty()) free_at(held.size() - 1);
        continue;
      }
      const auto stamp = static_cast<std::byte>(random());
      std::memset(pointer, static_cast<int>(stamp), size);
      held.push_back({static_cast<std::byte*>(pointer), size, stamp});
    } else if (what < 75 && !held.empty()) {
      free_at(random() % held.size());
    } else if (what < 82 && !held.empty()) {
      pool.record_use(held.at(random() % held.size()).pointer,
                      progress.stream(random() % kThreads));
    } else if (what < 86 && !held.empty()) {
      const std::size_t place = random() % held.size();
      exchange.swap(held.at(place));
      if (held.at(place).pointer == nullptr) {
        held.at(place) = held.back();
        held.pop_back();
      }
    } else if (what < 95) {
      progress.pass_all(progress.stream(random() % kThreads));
    } else if (what < 97) {
      pool.poll();
    } else if (what < 98) {
      pool.trim();
    } else {
      const Statistics s = pool.statistics();
      EXPECT_EQ(s.allocated.current + s.awaiting.current + s.cached.current, s.reserved.current);
    }
  }
  while (!held.empty()) free_at(held.size() - 1);
}

void run_threads(const ThreadsRun& run) {
  const std::uint64_t factor = std::uint64_t{1} << run.scale;
  const Bytes budget = kib(128) * factor;
  HostUpstream upstream(mib(1) * factor);
  RelaxedProgress progress;
  {
    Pool pool({upstream, progress}, testing::options_of(budget, run.kind));
    pool.set_limits(budget, run.running_out);
    Exchange exchange;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] { work(pool, progress, exchange, t, run); });
    }
    for (std::thread& thread : threads) thread.join();
    Held left;
    exchange.swap(left);
    if (left.pointer != nullptr) free_checked(pool, left, progress.stream(0));
    for (std::size_t t = 0; t < kThreads; ++t) progress.pass_all(progress.stream(t));
    pool.poll();
    Statistics s = pool.statistics();
    EXPECT_GT(s.hits + s.misses, 0U) << "it served nothing, which shows nothing";
    EXPECT_EQ(s.held.current, Bytes{0});
    EXPECT_EQ(s.requested.current, Bytes{0});
    EXPECT_EQ(s.cached.current, s.reserved.current);
    EXPECT_EQ(s.reserved.current, upstream.used());
    EXPECT_LE(s.reserved.peak, budget);
    pool.trim();
    EXPECT_EQ(pool.statistics().reserved.current, Bytes{0});
  }
  EXPECT_EQ(upstream.used(), Bytes{0});
}

TEST(PoolRandomThreads, HoldTheirBlocksAloneAndTheStatisticsAddUp) {
  std::uint64_t seed = testing::random_seed();
  SCOPED_TRACE(testing::seed_message(seed));
  for (const PoolKind kind : testing::kAllKinds) {
    for (const bool hand_over : {true, false}) {
      for (const bool wait : {true, false}) {
        SCOPED_TRACE(to_string(kind));
        ThreadsRun run{.kind = kind,
                       .running_out = {.hand_over = hand_over, .wait = wait},
                       .seed = seed += 100};
        // The host's pages have 2 MiB: a pool needs more than a few. Blocks of both areas then,
        // too.
        if (kind == PoolKind::kPaged) run.scale = 7;
        if (run.scale != 0) run.steps /= 4;
        run_threads(run);
      }
    }
  }
}

}  // namespace
}  // namespace weir
