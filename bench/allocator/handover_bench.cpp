// Measures taking a block of another stream when the budget has no room for a new one: one
// allocation on one stream, and the free that leaves the block to the other.

#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <stdexcept>

#include "bench/shared/rig.hpp"
#include "bench/shared/table.hpp"

namespace weir::bench {
namespace {

constexpr int kQueued = 1000;
constexpr Bytes kBlock = mib(1);

/// Two streams take the pool's only block from each other.
class Taking {
 public:
  explicit Taking(Rig& rig)
      : pool_(rig.pool),
        streams_{rig.device.backend().stream(StreamRole::kCompute),
                 rig.device.backend().stream(StreamRole::kCompute2)} {}

  void step() {
    turn_ = 1 - turn_;
    void* block = pool_.allocate(kBlock, streams_.at(turn_), "taken");
    benchmark::DoNotOptimize(block);
    pool_.deallocate(block, streams_.at(turn_));
  }

 private:
  Pool& pool_;
  const std::array<StreamId, 2> streams_;
  std::size_t turn_ = 0;
};

/// The device has passed the free, so the block is available at once.
void passed(benchmark::State& state) {
  Rig rig({.budget = kBlock});
  Taking taking(rig);
  for ([[maybe_unused]] auto _ : state) taking.step();
}

/// The device has not passed the free, so the taking stream must wait for the other.
void behind_a_wait(benchmark::State& state) {
  Rig rig({.budget = kBlock});
  Taking taking(rig);
  std::unique_ptr<Busy> busy;
  std::uint64_t steps = 0;
  const auto start = [&] {
    busy = std::make_unique<Busy>(rig.scheduler, std::initializer_list<StreamRole>{
                                                     StreamRole::kCompute, StreamRole::kCompute2});
    taking.step();
  };
  start();
  while (state.KeepRunningBatch(kQueued)) {
    for (int i = 0; i < kQueued; ++i) taking.step();
    steps += kQueued;
    state.PauseTiming();
    busy.reset();
    start();
    state.ResumeTiming();
  }
  if (rig.pool.statistics().handovers < steps) throw std::logic_error("no handover was measured");
}

}  // namespace

void add_handover(Table& table) {
  table.add({.figure = "handover/passed"}, passed)->UseRealTime();
  table.add({.figure = "handover/behind_a_wait"}, behind_a_wait)->UseRealTime();
}

}  // namespace weir::bench
