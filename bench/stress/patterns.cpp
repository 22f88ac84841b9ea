#include "bench/stress/patterns.hpp"

#include <algorithm>

#include "bench/stress/writer.hpp"

namespace weir::bench {
namespace {

constexpr Bytes part_of(Bytes whole, std::uint64_t part) { return {whole.count / part}; }

/// Frees random blocks until `bytes` fit next to the live ones.
void make_room(PatternWriter& writer, PatternBuffers& live, Bytes bytes) {
  while (writer.room() < bytes) writer.free(writer.take_any(live));
}

/// Random blocks at a constant level: `steps` allocations of sizes from `low` to `high`.
replay::Trace steady(std::string name, const PatternOptions& options, std::uint64_t steps,
                     Bytes low, Bytes high) {
  PatternWriter writer(std::move(name), options.most, options.seed);
  PatternBuffers live;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const Bytes bytes = writer.draw_size(low, high);
    make_room(writer, live, bytes);
    live.push_back(writer.allocate(bytes));
  }
  writer.free_all(live);
  return writer.finish();
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
