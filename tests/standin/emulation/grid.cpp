#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/standin/emulation/emulation.hpp"
#include "tests/standin/emulation/fiber.hpp"

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};

namespace weir::standin {
namespace {

constexpr unsigned kLanes = 32;

enum class State { kReady, kAtBlockBarrier, kAtWarpBarrier, kEnded };

struct Warp {
  /// Values that lanes exchange; two, as a lane may be one exchange ahead of another.
  std::array<std::array<std::uint64_t, kLanes>, 2> given{};
};

class Block;

struct Thread {
  Block* block = nullptr;
  unsigned number = 0;
  uint3 index{};
  State state = State::kReady;
  unsigned mask = 0;       ///< of the lanes it waits for
  unsigned exchanges = 0;  ///< made so far
  std::unique_ptr<Fiber> fiber;
};

/// The threads of the running block. They stay for the next block and kernel: making stacks takes
/// longer than most kernels.
class Block {
 public:
  void run(const WeirStandinLaunch& launch, void (*thread)(const WeirStandinLaunch&));
  Thread& current() { return *current_; }
  Warp& warp_of(const Thread& thread) { return warps_[thread.number / kLanes]; }
  void pause(State state, unsigned mask = 0);
  unsigned count = 0;       ///< of block_count: those who said yes
  unsigned last_count = 0;  ///< of the last one that all have come to

 private:
  static void run_thread(void* thread);
  bool run_ready();
  bool release_block();
  bool release_warps();
  [[noreturn]] void report_hang() const;

  const WeirStandinLaunch* launch_ = nullptr;
  void (*function_)(const WeirStandinLaunch&) = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<Warp> warps_;
  std::size_t size_ = 0;
  Thread* current_ = nullptr;
  bool backwards_ = false;  ///< the order of the next turns
};

Block& this_block() {
  thread_local Block block;
  return block;
}

void Block::run_thread(void* thread) {
  const Block& block = *static_cast<Thread*>(thread)->block;
  block.function_(*block.launch_);
}

void Block::pause(State state, unsigned mask) {
  Thread& self = *current_;
  self.state = state;
  self.mask = mask;
  self.fiber->pause();
}

/// Returns false if no thread was ready. The order alternates: with one order, a thread that races
/// with another between two barriers would always win.
bool Block::run_ready() {
  bool ran = false;
  for (std::size_t turn = 0; turn < size_; ++turn) {
    Thread& thread = *threads_[backwards_ ? size_ - 1 - turn : turn];
    if (thread.state != State::kReady) continue;
    ran = true;
    current_ = &thread;
    threadIdx = thread.index;
    if (thread.fiber->resume()) thread.state = State::kEnded;
  }
  if (ran) backwards_ = !backwards_;
  return ran;
}

bool Block::release_block() {
  bool any = false;
  for (std::size_t i = 0; i < size_; ++i) {
    const State state = threads_[i]->state;
    if (state != State::kAtBlockBarrier && state != State::kEnded) return false;
    any = any || state == State::kAtBlockBarrier;
  }
  for (std::size_t i = 0; i < size_; ++i) {
    if (threads_[i]->state == State::kAtBlockBarrier) threads_[i]->state = State::kReady;
  }
  last_count = count;
  count = 0;
  return any;
}

/// Releases threads whose lanes have all come, or ended.
bool Block::release_warps() {
  bool any = false;
  for (std::size_t first = 0; first < size_; first += kLanes) {
    const std::size_t end = std::min(first + kLanes, size_);
    unsigned waiting = 0;
    unsigned ended = 0;
    for (std::size_t i = first; i < end; ++i) {
      const State state = threads_[i]->state;
      if (state == State::kAtWarpBarrier) waiting |= 1U << (i - first);
      if (state == State::kEnded) ended |= 1U << (i - first);
    }
    for (std::size_t i = end - first; i < kLanes; ++i) ended |= 1U << i;
    for (std::size_t i = first; i < end; ++i) {
      Thread& thread = *threads_[i];
      if (thread.state != State::kAtWarpBarrier) continue;
      if ((thread.mask & ~(waiting | ended)) != 0) continue;
      thread.state = State::kReady;
      any = true;
    }
  }
  return any;
}

void Block::report_hang() const {
  std::fprintf(stderr,
               "stand-in: threads of block (%u, %u, %u) wait at a barrier for others that "
               "wait elsewhere:\n",
               blockIdx.x, blockIdx.y, blockIdx.z);
  for (std::size_t i = 0; i < size_; ++i) {
    const Thread& thread = *threads_[i];
    if (thread.state == State::kEnded) continue;
    std::fprintf(stderr, "  thread %u: at a %s barrier\n", thread.number,
                 thread.state == State::kAtBlockBarrier ? "block's" : "warp's");
  }
  std::abort();
}

void Block::run(const WeirStandinLaunch& launch, void (*function)(const WeirStandinLaunch&)) {
  launch_ = &launch;
  function_ = function;
  size_ = std::size_t{launch.block.x} * launch.block.y * launch.block.z;
  while (threads_.size() < size_) {
    auto thread = std::make_unique<Thread>();
    thread->block = this;
    thread->number = static_cast<unsigned>(threads_.size());
    thread->fiber = std::make_unique<Fiber>(&Block::run_thread, thread.get());
    threads_.push_back(std::move(thread));
  }
  warps_.assign((size_ + kLanes - 1) / kLanes, Warp{});
  count = 0;
  backwards_ = false;
  for (std::size_t i = 0; i < size_; ++i) {
    Thread& thread = *threads_[i];
    thread.state = State::kReady;
    thread.exchanges = 0;
    const auto number = static_cast<unsigned>(i);
    thread.index = {number % launch.block.x, number / launch.block.x % launch.block.y,
                    number / launch.block.x / launch.block.y};
  }
  for (;;) {
    if (run_ready() || release_warps() || release_block()) continue;
    const auto ended = [](const auto& thread) { return thread->state == State::kEnded; };
    const auto end = threads_.begin() + static_cast<std::ptrdiff_t>(size_);
    if (std::all_of(threads_.begin(), end, ended)) return;
    report_hang();
  }
}

}  // namespace

void run_grid(const WeirStandinLaunch& launch, void (*thread)(const WeirStandinLaunch&)) {
  gridDim = launch.grid;
  blockDim = launch.block;
  for (unsigned z = 0; z < launch.grid.z; ++z) {
    for (unsigned y = 0; y < launch.grid.y; ++y) {
      for (unsigned x = 0; x < launch.grid.x; ++x) {
        blockIdx = {x, y, z};
        this_block().run(launch, thread);
      }
    }
  }
}

void block_barrier() { this_block().pause(State::kAtBlockBarrier); }

unsigned block_count(bool yes) {
  Block& block = this_block();
  if (yes) ++block.count;
  block.pause(State::kAtBlockBarrier);
  return block.last_count;
}

void warp_barrier(unsigned mask) { this_block().pause(State::kAtWarpBarrier, mask); }

std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned source) {
  Block& block = this_block();
  Thread& self = block.current();
  auto& given = block.warp_of(self).given.at(self.exchanges++ % 2);
  given.at(self.number % kLanes) = value;
  block.pause(State::kAtWarpBarrier, mask);
  return given.at(source % kLanes);
}

unsigned warp_ballot(unsigned mask, bool yes) {
  Block& block = this_block();
  Thread& self = block.current();
  auto& given = block.warp_of(self).given.at(self.exchanges++ % 2);
  given.at(self.number % kLanes) = yes ? 1 : 0;
  block.pause(State::kAtWarpBarrier, mask);
  unsigned votes = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1U) != 0 && given.at(i) != 0) votes |= 1U << i;
  }
  return votes;
}

unsigned lane() { return this_block().current().number % kLanes; }

}  // namespace weir::standin
