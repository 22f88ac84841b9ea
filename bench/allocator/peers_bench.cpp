// Compares allocate and free of a cached block between our pools and other allocators.
//
// Our pools run on the cpu device's streams, as in pool_bench.cpp, next to jemalloc, which has no
// streams; and, if peers are available, on the peers' runtime next to RMM's pool. Only jemalloc's
// blocks have memory, and nothing touches any block. docs/fragmentation.md has the peers' settings.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "allocator/pool.hpp"
#include "bench/peers/peers.hpp"
#include "bench/shared/jemalloc.hpp"
#include "bench/shared/table.hpp"
#include "scheduler/device/cpu_device.hpp"

namespace weir::bench {
namespace {

using replay::Subject;

/// Enough for every figure here, and no more than the device size that PyTorch's allocator sees.
constexpr Bytes kCapacity = gib(1024);
constexpr Bytes kSame = kib(64);
constexpr const char* kReference = "rmm_pool";      ///< for allocators that record events
constexpr const char* kHostReference = "jemalloc";  ///< for allocators that do not
constexpr std::int64_t kMost = 100'000;             ///< live blocks at one time

/// A pool on the cpu device, with real streams and points.
class CpuPool final : public Subject {
 public:
  explicit CpuPool(const PoolOptions& options)
      : device_(gib(1), std::make_unique<SimulatedUpstream>(kCapacity * 4)),
        pool_({device_.upstream(), device_.progress()}, options) {}

  [[nodiscard]] void* allocate(Bytes bytes, StreamId /*stream*/) override {
    return pool_.allocate(bytes, stream_);
  }
  void deallocate(void* pointer, Bytes /*bytes*/, StreamId /*stream*/) override {
    (void)pool_.deallocate(pointer, stream_);
  }
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override { return {}; }

 private:
  CpuDevice device_;
  const StreamId stream_ = device_.stream(StreamRole::kCompute);
  Pool pool_;
};

/// jemalloc's malloc and free in their own arena.
class JemallocSubject final : public Subject {
 public:
  JemallocSubject() { arena_.enter(); }
  ~JemallocSubject() override { arena_.leave(); }
  JemallocSubject(const JemallocSubject&) = delete;
  JemallocSubject& operator=(const JemallocSubject&) = delete;

  [[nodiscard]] void* allocate(Bytes bytes, StreamId /*stream*/) override {
    return Jemalloc::kMalloc(bytes.count);
  }
  void deallocate(void* pointer, Bytes /*bytes*/, StreamId /*stream*/) override {
    Jemalloc::kFree(pointer);
  }
  void record_use(void* /*pointer*/, StreamId /*stream*/) override {}
  [[nodiscard]] replay::Footprint footprint() const override { return {}; }

 private:
  Jemalloc::Arena arena_;
};

struct Contestant {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
  /// The subject to compare with.
  std::string reference = kReference;
  /// One of our pools that splits and joins.
  bool splits = false;
  /// One of our pools on the peers' runtime.
  bool on_runtime = false;
  /// Whether a free block serves any request that fits, so that unique sizes find a block.
  bool serves_any_size = true;
  /// Whether a call takes time proportional to the number of blocks, which makes large numbers slow
  /// to repeat.
  bool is_linear = false;
};

void add_pools(std::vector<Contestant>& contestants) {
  const PeersRuntime* const runtime = peers_runtime();
  for (const PoolKind kind : pool_kinds()) {
    if (kind == PoolKind::kUnpooled) continue;
    PoolOptions options;
    options.kind.value = kind;
    const std::string name(to_string(kind));
    const bool splits = kind != PoolKind::kNaive && kind != PoolKind::kRound;
    const bool any = kind != PoolKind::kNaive;
    contestants.push_back({.name = name,
                           .make = [options] { return std::make_unique<CpuPool>(options); },
                           .reference = kHostReference,
                           .splits = splits,
                           .serves_any_size = any});
    if (runtime == nullptr) continue;
    contestants.push_back({.name = name + "/cuda",
                           .make = [=] { return runtime->make_pool(options, kCapacity * 4); },
                           .splits = splits,
                           .on_runtime = true,
                           .serves_any_size = any});
  }
}

std::vector<Contestant> contestants() {
  std::vector<Contestant> all;
  add_pools(all);
  for (const Peer& peer : find_peers().found) {
    const replay::MakeSubject make =
        peer.on([](Bytes capacity) { return std::make_unique<SimulatedUpstream>(capacity); });
    all.push_back({.name = peer.name,
                   .make = [make] { return make(kCapacity); },
                   .is_linear = peer.name.starts_with("rmm_")});
  }
  all.push_back({.name = kHostReference,
                 .make = [] { return std::make_unique<JemallocSubject>(); },
                 .reference = kHostReference});
  return all;
}

/// A constant number of live blocks of sizes from 4 KiB to 8 MiB, with each factor of two equally
/// likely. A step frees a random block and allocates one of another size. Sizes hardly ever repeat,
/// so an allocator that splits reaches its worst fragmentation.
class Population {
 public:
  Population(Subject& subject, std::size_t live) : subject_(subject), blocks_(live) {
    draw();
    fill();
    // Warms up a while longer, limited for allocators that examine every hole.
    for (std::size_t i = 0; i < std::min<std::size_t>(live, 2000); ++i) step();
  }
  ~Population() {
    for (const Block& block : blocks_) subject_.deallocate(block.pointer, block.size, stream_);
  }
  Population(const Population&) = delete;
  Population& operator=(const Population&) = delete;

  void step() {
    const Draw& draw = draws_[next_++ % draws_.size()];
    Block& block = blocks_[draw.block];
    // The measurement must not include a cache miss of the list of blocks.
    __builtin_prefetch(&blocks_[draws_[next_ % draws_.size()].block], 1);
    subject_.deallocate(block.pointer, block.size, stream_);
    block = {subject_.allocate(draw.size, stream_), draw.size};
  }

 private:
  struct Block {
    void* pointer = nullptr;
    Bytes size;
  };
  struct Draw {
    std::uint32_t block = 0;
    Bytes size;
  };

  [[nodiscard]] Bytes any_size() {
    std::uniform_real_distribution<double> log2(12, 23);
    return {static_cast<std::uint64_t>(std::exp2(log2(random_)))};
  }
  void draw() {
    std::uniform_int_distribution<std::uint32_t> any(
        0, static_cast<std::uint32_t>(blocks_.size()) - 1);
    for (Draw& draw : draws_) draw = {any(random_), any_size()};
  }
  /// Allocates twice as many blocks and frees a random half: the holes that many steps would make.
  void fill() {
    std::vector<Block> all(blocks_.size() * 2);
    for (Block& block : all) {
      const Bytes size = any_size();
      block = {subject_.allocate(size, stream_), size};
    }
    std::shuffle(all.begin(), all.end(), random_);
    const auto half = all.begin() + static_cast<std::ptrdiff_t>(blocks_.size());
    std::copy(all.begin(), half, blocks_.begin());
    for (auto block = half; block != all.end(); ++block) {
      subject_.deallocate(block->pointer, block->size, stream_);
    }
  }

  Subject& subject_;
  const StreamId stream_{1};
  std::vector<Block> blocks_;
  std::minstd_rand random_{1};
  std::vector<Draw> draws_{std::size_t{1} << 15U};
  std::size_t next_ = 0;
};

void same_block(benchmark::State& state, Subject& subject) {
  const StreamId stream{1};
  for ([[maybe_unused]] auto _ : state) {
    void* pointer = subject.allocate(kSame, stream);
    benchmark::DoNotOptimize(pointer);
    subject.deallocate(pointer, kSame, stream);
  }
}

std::string same_name(const std::string& contestant) { return "peers/same/" + contestant; }
std::string random_name(std::int64_t live, const std::string& contestant) {
  return "peers/random/live:" + std::to_string(live) + "/" + contestant;
}

/// Returns the reference's figure, unless the contestant is the reference.
template <typename NameOf>
std::string other(const Contestant& contestant, const NameOf& name_of) {
  return contestant.name == contestant.reference ? "" : name_of(contestant.reference);
}

void add_same(Table& table, const Contestant& contestant) {
  const std::string name = same_name(contestant.name);
  benchmark::RegisterBenchmark(name.c_str(), [make = contestant.make](benchmark::State& state) {
    const std::unique_ptr<Subject> subject = make();
    const Population others(*subject, 10);
    same_block(state, *subject);
  })->UseRealTime();
  table.add({.figure = name,
             .against = other(contestant, same_name),
             .most_ns = contestant.splits && !contestant.on_runtime ? 200.0 : 0,
             .most_ratio = contestant.on_runtime ? 1.0 : 0});
}

/// The allowed ratio to RMM's pool, whose time grows with the blocks: at most its time, and a fifth
/// of it with very many blocks.
double most_ratio(const Contestant& contestant, std::int64_t live) {
  if (!contestant.on_runtime) return 0;
  if (live == 10) return 1;
  return live == 10'000 && contestant.splits ? 0.2 : 0;
}

void add_random(Table& table, const Contestant& contestant, std::int64_t live) {
  const std::string name = random_name(live, contestant.name);
  auto* const benchmark =
      benchmark::RegisterBenchmark(name.c_str(), [make = contestant.make, live](auto& state) {
        const std::unique_ptr<Subject> subject = make();
        Population population(*subject, static_cast<std::size_t>(live));
        for ([[maybe_unused]] auto _ : state) population.step();
      });
  benchmark->UseRealTime();
  // Some allocators need ten seconds to make that many blocks, each time.
  if (live == kMost && contestant.is_linear) benchmark->Iterations(200)->Repetitions(1);
  table.add({.figure = name,
             .against = other(contestant, [live](auto& of) { return random_name(live, of); }),
             .most_ratio = most_ratio(contestant, live)});
  if (live == kMost) {
    table.add({.figure = name,
               .against = random_name(10, contestant.name),
               .most_ratio = contestant.splits ? 4.0 : 0});
  }
}

}  // namespace

void add_peers(Table& table) {
  for (const std::string& missing : find_peers().missing) table.note("peers", missing);
  if (const PeersRuntime* const runtime = peers_runtime(); runtime != nullptr) {
    benchmark::RegisterBenchmark("peers/event_record", [=](benchmark::State& state) {
      const std::function<void()> record = runtime->make_event_recorder();
      for ([[maybe_unused]] auto _ : state) record();
    })->UseRealTime();
    table.add({.figure = "peers/event_record"});
  }
  const std::vector<Contestant> all = contestants();
  for (const Contestant& contestant : all) add_same(table, contestant);
  for (const std::int64_t live :
       {std::int64_t{10}, std::int64_t{100}, std::int64_t{10'000}, kMost}) {
    for (const Contestant& contestant : all) {
      if (!contestant.serves_any_size) continue;
      // One of them is enough to show the trend.
      if (live == kMost && contestant.is_linear && contestant.name != kReference) continue;
      add_random(table, contestant, live);
    }
  }
}

}  // namespace weir::bench
