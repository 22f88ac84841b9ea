// Patterns that are hard on one of our pools each, by its way of rounding, splitting or mapping.
// Their sizes are the pool's own and do not grow with the pattern.

#include <algorithm>

#include "bench/stress/patterns.hpp"
#include "bench/stress/writer.hpp"

namespace weir::bench {
namespace {

/// Blocks of sizes from `size_of`, at a constant level.
template <typename SizeOf>
replay::Trace steady_of(std::string name, const PatternOptions& options, int steps,
                        const SizeOf& size_of) {
  PatternWriter writer(std::move(name), options.most, options.seed);
  PatternBuffers live;
  for (int i = 0; i < steps; ++i) {
    const Bytes bytes = size_of(writer);
    while (writer.room() < bytes) writer.free(writer.take_any(live));
    live.push_back(writer.allocate(bytes));
  }
  writer.free_all(live);
  return writer.finish();
}

}  // namespace

replay::Trace against_round_pattern(const PatternOptions& options) {
  // Powers of two end at 16 MiB = 2^24; above are multiples of it.
  return steady_of("against round", options, 4000, [](PatternWriter& writer) -> Bytes {
    const bool above = writer.draw(0, 7) == 0 && writer.most() >= gib(1);
    if (above) return {mib(16).count * writer.draw(1, 3) + 1};
    return {(std::uint64_t{1} << writer.draw(12, 23)) + 1};
  });
}

replay::Trace against_naive_pattern(const PatternOptions& options) {
  const std::uint64_t most = std::clamp<std::uint64_t>(options.most.count / mib(16).count, 2, 16);
  return steady_of("against naive", options, 4000, [most](PatternWriter& writer) -> Bytes {
    return {mib(2).count * writer.draw(1, most) + 1};
  });
}

replay::Trace against_best_fit_pattern(const PatternOptions& options) {
  // Blocks separated by small ones that stay. The next blocks are an eighth larger than the holes,
  // and no two holes are adjacent, so none of them fits. After Robson's bound for allocators that
  // cannot move blocks (Journal of the ACM 21(3), 1974), but without regard to addresses.
  constexpr int kRounds = 5;
  PatternWriter writer("against best_fit", options.most, options.seed);
  PatternBuffers pins;
  Bytes bytes{options.most.count / 48};
  for (int round = 0; round < kRounds; ++round) {
    const Bytes pin{bytes.count / 16};
    PatternBuffers blocks;
    while (writer.room() >= bytes + pin) {
      blocks.push_back(writer.allocate(bytes));
      pins.push_back(writer.allocate(pin));
    }
    writer.free_all(blocks);
    bytes += {bytes.count / 8};
  }
  writer.free_all(pins);
  return writer.finish();
}

replay::Trace against_paged_pattern(const PatternOptions& options) {
  constexpr Bytes kBlock = kib(256);
  constexpr std::size_t kBlocksInPage = 8;
  PatternWriter writer("against paged", options.most, options.seed);
  for (int round = 0; round < 2; ++round) {
    PatternBuffers small;
    while (writer.room() >= kBlock) small.push_back(writer.allocate(kBlock));
    PatternBuffers survivors;
    for (std::size_t i = 0; i < small.size(); ++i) {
      if (i % kBlocksInPage == 0) {
        survivors.push_back(small[i]);
      } else {
        writer.free(small[i]);
      }
    }
    PatternBuffers large;
    const Bytes bytes{options.most.count / 32};
    while (writer.room() >= bytes) large.push_back(writer.allocate(bytes));
    writer.free_all(large);
    writer.free_all(survivors);
  }
  return writer.finish();
}

}  // namespace weir::bench
