#include "bench/stress/patterns.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace weir::bench {
namespace {

struct PatternBuffer {
  std::uint32_t number = 0;
  std::uint32_t stream = 0;
  Bytes bytes;
};
using PatternBuffers = std::vector<PatternBuffer>;

/// Builds a trace, with its live buffers and its random numbers. A seed gives the same trace with
/// the same standard library.
class PatternWriter {
 public:
  PatternWriter(std::string name, Bytes most, std::uint64_t seed)
      : builder_(std::move(name)), most_(most), random_(seed) {}

  [[nodiscard]] Bytes most() const { return most_; }
  [[nodiscard]] Bytes room() const { return most_ - live_; }
  [[nodiscard]] std::mt19937_64& random() { return random_; }
  /// Draws uniformly from `low` to `high`.
  [[nodiscard]] std::uint64_t draw(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random_);
  }
  /// Draws from `low` to `high`, with each factor of two equally likely.
  [[nodiscard]] Bytes draw_size(Bytes low, Bytes high) {
    const std::uniform_real_distribution<double>::param_type range(
        std::log2(static_cast<double>(low.count)), std::log2(static_cast<double>(high.count)));
    const double log2 = std::uniform_real_distribution<double>(range)(random_);
    return {static_cast<std::uint64_t>(std::exp2(log2))};
  }

  [[nodiscard]] PatternBuffer allocate(Bytes bytes, std::uint32_t stream = 0) {
    live_ += bytes;
    return {.number = builder_.allocate(bytes, stream), .stream = stream, .bytes = bytes};
  }
  /// Frees in the order of the stream of its allocation.
  void free(const PatternBuffer& buffer) { free_on(buffer, buffer.stream); }
  void free_on(const PatternBuffer& buffer, std::uint32_t stream) {
    live_ -= buffer.bytes;
    builder_.free(buffer.number, stream);
  }
  void use(const PatternBuffer& buffer, std::uint32_t stream) {
    builder_.use(buffer.number, stream);
  }
  /// Also empties `buffers`.
  void free_all(PatternBuffers& buffers) {
    for (const PatternBuffer& buffer : buffers) free(buffer);
    buffers.clear();
  }
  /// Removes a random one from `buffers`, which must not be empty.
  [[nodiscard]] PatternBuffer take_any(PatternBuffers& buffers) {
    std::swap(buffers[draw(0, buffers.size() - 1)], buffers.back());
    const PatternBuffer taken = buffers.back();
    buffers.pop_back();
    return taken;
  }
  [[nodiscard]] replay::Trace finish() { return builder_.finish(); }

 private:
  replay::TraceBuilder builder_;
  const Bytes most_;
  Bytes live_;
  std::mt19937_64 random_;
};

constexpr Bytes part_of(Bytes whole, std::uint64_t part) { return {whole.count / part}; }

/// Random blocks at a constant level: `steps` allocations of sizes from `size_of(writer)`.
template <typename SizeOf>
replay::Trace steady(std::string name, const PatternOptions& options, std::uint64_t steps,
                     const SizeOf& size_of) {
  PatternWriter writer(std::move(name), options.most, options.seed);
  PatternBuffers live;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const Bytes bytes = size_of(writer);
    while (writer.room() < bytes) writer.free(writer.take_any(live));
    live.push_back(writer.allocate(bytes));
  }
  writer.free_all(live);
  return writer.finish();
}

/// The same, of sizes from `low` to `high`.
replay::Trace steady(std::string name, const PatternOptions& options, std::uint64_t steps,
                     Bytes low, Bytes high) {
  return steady(std::move(name), options, steps,
                [=](PatternWriter& writer) { return writer.draw_size(low, high); });
}

/// A training step. In the forward pass each layer keeps an activation and uses a temporary; in the
/// backward pass a gradient replaces the activation. `share` is the sequence's length relative to
/// the longest.
void write_step(PatternWriter& writer, const std::vector<Bytes>& layers, double share) {
  const auto scaled = [share](Bytes bytes) {
    return Bytes{static_cast<std::uint64_t>(static_cast<double>(bytes.count) * share)};
  };
  PatternBuffers activations;
  for (const Bytes layer : layers) {
    const auto temporary = writer.allocate(scaled(part_of(layer, 2)));
    activations.push_back(writer.allocate(scaled(layer)));
    writer.free(temporary);
  }
  auto gradient = writer.allocate(scaled(layers.back()));
  while (!activations.empty()) {
    const auto next = writer.allocate(
        scaled(activations.size() > 1 ? layers[activations.size() - 2] : layers.front()));
    writer.free(activations.back());
    activations.pop_back();
    writer.free(gradient);
    gradient = next;
  }
  writer.free(gradient);
}

/// Steps of a model of 32 layers, with weights that stay.
replay::Trace steps(std::string name, const PatternOptions& options, double least_share) {
  PatternWriter writer(std::move(name), options.most, options.seed);
  PatternBuffers weights;
  for (int i = 0; i < 32; ++i) weights.push_back(writer.allocate(part_of(options.most, 128)));
  // 0.65 for the activations; a temporary or two gradients add to the last one.
  std::vector<Bytes> layers;
  for (std::uint64_t i = 0; i < 32; ++i) {
    layers.push_back(part_of(options.most * (i % 4 == 3 ? 38 : 9), 800));
  }
  for (int step = 0; step < 60; ++step) {
    const double share = static_cast<double>(writer.draw(0, 100)) / 100;
    write_step(writer, layers, least_share + (1 - least_share) * share);
  }
  writer.free_all(weights);
  return writer.finish();
}

replay::Trace random_pattern(const PatternOptions& options) {
  return steady("random", options, 8000, kib(4), part_of(options.most, 32));
}

replay::Trace sawtooth_pattern(const PatternOptions& options) {
  PatternWriter writer("sawtooth", options.most, options.seed);
  PatternBuffers live;
  for (int tooth = 0; tooth < 16; ++tooth) {
    const Bytes largest = writer.draw_size(part_of(options.most, 256), part_of(options.most, 32));
    while (true) {
      const Bytes bytes = writer.draw_size(part_of(largest, 64), largest);
      if (writer.room() < bytes) break;
      live.push_back(writer.allocate(bytes));
    }
    const Bytes down = options.most - part_of(options.most, 20);
    while (!live.empty() && writer.room() < down) writer.free(writer.take_any(live));
  }
  writer.free_all(live);
  return writer.finish();
}

replay::Trace comb_pattern(const PatternOptions& options) {
  PatternWriter writer("comb", options.most, options.seed);
  for (int round = 0; round < 3; ++round) {
    PatternBuffers teeth;
    for (std::uint64_t part = 256; part >= 16; part /= 2) {
      const Bytes bytes = part_of(options.most, part);
      PatternBuffers row;
      while (writer.room() >= bytes) row.push_back(writer.allocate(bytes));
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (i % 2 == 0) {
          writer.free(row[i]);
        } else {
          teeth.push_back(row[i]);
        }
      }
    }
    writer.free_all(teeth);
  }
  return writer.finish();
}

replay::Trace growing_pattern(const PatternOptions& options) {
  PatternWriter writer("growing", options.most, options.seed);
  for (int round = 0; round < 8; ++round) {
    PatternBuffers lists;
    for (int i = 0; i < 24; ++i) lists.push_back(writer.allocate(part_of(options.most, 512)));
    const std::uint64_t percent = writer.draw(110, 160);
    while (true) {
      auto& list = lists[writer.draw(0, lists.size() - 1)];
      const Bytes larger = part_of(list.bytes * percent, 100);
      if (writer.room() < larger) break;
      const auto grown = writer.allocate(larger);
      writer.free(list);
      list = grown;
    }
    writer.free_all(lists);
  }
  return writer.finish();
}

replay::Trace fixed_steps_pattern(const PatternOptions& options) {
  return steps("fixed steps", options, 1);
}

replay::Trace varying_steps_pattern(const PatternOptions& options) {
  return steps("varying steps", options, 0.4);
}

replay::Trace streams_pattern(const PatternOptions& options) {
  constexpr std::uint32_t kStreams = 4;
  PatternWriter writer("streams", options.most, options.seed);
  const auto any_stream = [&] { return static_cast<std::uint32_t>(writer.draw(0, kStreams - 1)); };
  PatternBuffers live;
  const auto free_one = [&](const PatternBuffer& buffer) {
    writer.free_on(buffer, writer.draw(0, 3) == 0 ? any_stream() : buffer.stream);
  };
  for (std::uint32_t i = 0; i < 6000; ++i) {
    const Bytes bytes = writer.draw_size(kib(4), part_of(options.most, 32));
    while (writer.room() < bytes) free_one(writer.take_any(live));
    // The first blocks introduce the streams in order.
    const bool first = i < kStreams;
    live.push_back(writer.allocate(bytes, first ? i : any_stream()));
    if (first) continue;
    const std::uint32_t other = any_stream();
    if (other != live.back().stream && writer.draw(0, 1) == 0) writer.use(live.back(), other);
  }
  for (const auto& buffer : live) free_one(buffer);
  return writer.finish();
}

// These are hard on one of our pools each, by its way of rounding, splitting or mapping. Their
// sizes are the pool's own and do not grow with the pattern.

replay::Trace against_round_pattern(const PatternOptions& options) {
  // Powers of two end at 16 MiB = 2^24; above are multiples of it.
  return steady("against round", options, 4000, [](PatternWriter& writer) -> Bytes {
    const bool above = writer.draw(0, 7) == 0 && writer.most() >= gib(1);
    if (above) return {mib(16).count * writer.draw(1, 3) + 1};
    return {(std::uint64_t{1} << writer.draw(12, 23)) + 1};
  });
}

replay::Trace against_naive_pattern(const PatternOptions& options) {
  const std::uint64_t most = std::clamp<std::uint64_t>(options.most.count / mib(16).count, 2, 16);
  return steady("against naive", options, 4000, [most](PatternWriter& writer) -> Bytes {
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

}  // namespace

std::span<const Pattern> patterns() {
  static const std::vector<Pattern> kAll{
      {"random", "any size at any time, at a steady level", random_pattern},
      {"sawtooth", "up to the most and down to a twentieth, each time of other sizes",
       sawtooth_pattern},
      {"comb", "every second block freed, then blocks of twice the size", comb_pattern},
      {"growing", "lists that are copied to a larger block as they grow", growing_pattern},
      {"fixed steps", "training steps, all of the same shapes", fixed_steps_pattern},
      {"varying steps", "training steps, each of another length", varying_steps_pattern},
      {"streams", "random blocks of four streams, used and freed on others too", streams_pattern},
      {"against round", "sizes a byte above powers of two, and above multiples of 16 MiB",
       against_round_pattern},
      {"against naive", "sizes a byte above multiples of 2 MiB", against_naive_pattern},
      {"against best_fit", "blocks kept apart by small ones that stay, then larger blocks",
       against_best_fit_pattern},
      {"against paged", "one small block that stays in every 2 MiB, then large blocks",
       against_paged_pattern},
  };
  return kAll;
}

std::vector<replay::Trace> thread_patterns(const PatternOptions& options, unsigned threads) {
  std::vector<replay::Trace> traces;
  for (unsigned i = 0; i < threads; ++i) {
    const PatternOptions own{.most = part_of(options.most, threads), .seed = options.seed + i};
    traces.push_back(steady("threads", own, 4000, kib(4), part_of(own.most, 16)));
    for (replay::Operation& operation : traces.back().operations) operation.stream = i;
    traces.back().streams = i + 1;
  }
  return traces;
}

}  // namespace weir::bench
