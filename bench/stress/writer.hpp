#pragma once

// Helpers for writing patterns.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tools/replay/read/trace.hpp"

namespace weir::bench {

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

}  // namespace weir::bench
