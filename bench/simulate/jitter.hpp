#pragma once

// Simulated time, random numbers, and how unsteady a host is: distributions of times, parametric or
// recorded in real runs.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::simulate {

/// Since the simulated run began; also differences.
using Time = std::chrono::nanoseconds;

/// Returns `time` times `factor`, rounded.
[[nodiscard]] inline Time scaled(Time time, double factor) {
  return Time(std::llround(static_cast<double>(time.count()) * factor));
}

/// Random numbers that are the same with every standard library: SplitMix64 (Steele, Lea, Flood
/// 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  [[nodiscard]] std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// From 0, which it may be, to 1, which it is not.
  [[nodiscard]] double uniform() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }
  /// Mean 0, deviation 1 (Box and Muller 1958).
  [[nodiscard]] double normal() noexcept {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

/// A histogram: times between `from` and `to`, each of them equally likely.
struct JitterBucket {
  Time from{};
  Time to{};
  std::uint64_t count = 0;
};

/// A distribution of times. Always zero without buckets.
class Distribution {
 public:
  Distribution() = default;
  /// The buckets in ascending order; those without a count are dropped.
  explicit Distribution(const std::vector<JitterBucket>& buckets);

  [[nodiscard]] Time draw(Random& random) const noexcept;
  /// Returns a time that `part` of all draws do not exceed.
  [[nodiscard]] Time quantile(double part) const noexcept;
  [[nodiscard]] double mean_ns() const noexcept;
  [[nodiscard]] const std::vector<JitterBucket>& buckets() const noexcept { return buckets_; }

 private:
  std::vector<JitterBucket> buckets_;  ///< counts are sums up to here
};

/// What the host adds to the times of a workload.
struct Jitter {
  Distribution wake_up;      ///< from the end of what a thread waits for until it runs
  Distribution host;         ///< added to each batch's time on the host before its admission
  Distribution submit;       ///< and from there to its end
  Distribution copy;         ///< added to each copy
  Distribution device;       ///< before each compute that follows another at once
  Distribution device_idle;  ///< before each compute that finds its stream idle
};

/// What was added to one batch in a real run.
struct BatchDelays {
  Time host{};
  Time submit{};
  std::optional<Time> wake_up{};  ///< none: it did not wait, or not for the device alone
  std::optional<Time> copy{};     ///< none: its copy waited for memory
  std::optional<Time> device{};   ///< none: its compute did, or it has failed
};
/// Of each producer, in its order.
using RecordedDelays = std::vector<std::vector<BatchDelays>>;

/// Returns the sorted samples as a histogram whose buckets grow by about a tenth.
[[nodiscard]] std::vector<JitterBucket> histogram(std::vector<Time> samples);

/// Returns what is assumed of an idle machine: half of the wake-ups take at most 20 us, 95% at most
/// 50 us, and one step in 2,000 takes about 0.5 ms longer.
[[nodiscard]] Jitter assumed_jitter();

/// Parses lines `NAME FROM_NS TO_NS COUNT`, where NAME is a member of Jitter; `#` begins a comment.
/// Throws UsageError with `path` and the line.
[[nodiscard]] Jitter parse_jitter(const std::string& path, std::string_view text);
/// Reads a file for parse_jitter; `none` and `assumed` are no files. Throws UsageError.
[[nodiscard]] Jitter read_jitter(const std::string& path);
/// Returns a text that parse_jitter reads.
[[nodiscard]] std::string format_jitter(const Jitter& jitter);

}  // namespace weir::simulate
