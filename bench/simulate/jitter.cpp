#include "bench/simulate/jitter.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"

namespace weir::simulate {
namespace {

constexpr std::int64_t kLongest = 3'600'000'000'000;  ///< an hour

using Named = std::pair<std::string_view, Distribution Jitter::*>;
constexpr std::array<Named, 6> kNames{{{"wake_up", &Jitter::wake_up},
                                       {"host", &Jitter::host},
                                       {"submit", &Jitter::submit},
                                       {"copy", &Jitter::copy},
                                       {"device", &Jitter::device},
                                       {"device_idle", &Jitter::device_idle}}};

Time between(const JitterBucket& bucket, double part) {
  return bucket.from + scaled(bucket.to - bucket.from, part);
}

/// Returns a histogram of a log-normal distribution, of which `rare` are exponential with
/// `rare_mean` instead.
std::vector<JitterBucket> log_normal(Time median, double sigma, double rare, Time rare_mean) {
  constexpr int kSamples = 100'000;
  Random random(1);
  std::vector<Time> samples;
  samples.reserve(kSamples);
  for (int i = 0; i < kSamples; ++i) {
    const bool is_rare = random.uniform() < rare;
    const double factor =
        is_rare ? -std::log(1 - random.uniform()) : std::exp(sigma * random.normal());
    samples.push_back(scaled(is_rare ? rare_mean : median, factor));
  }
  return histogram(std::move(samples));
}

[[noreturn]] void refuse_line(const std::string& path, std::size_t number) {
  throw UsageError(
      "--jitter '" + path + "', line " + std::to_string(number) +
      ": want wake_up, host, submit, copy, device or device_idle, two times in ns, and a count");
}

std::optional<JitterBucket> parse_bucket(std::istream& words) {
  std::array<std::uint64_t, 3> values{};
  for (std::uint64_t& value : values) {
    std::string word;
    words >> word;
    const auto whole = parse_whole(word);
    if (!whole || *whole > static_cast<std::uint64_t>(kLongest)) return std::nullopt;
    value = *whole;
  }
  if (values[0] > values[1]) return std::nullopt;
  return JitterBucket{.from = Time(static_cast<std::int64_t>(values[0])),
                      .to = Time(static_cast<std::int64_t>(values[1])),
                      .count = values[2]};
}

}  // namespace

Distribution::Distribution(const std::vector<JitterBucket>& buckets) {
  std::uint64_t sum = 0;
  for (const JitterBucket& bucket : buckets) {
    if (bucket.count == 0) continue;
    sum += bucket.count;
    buckets_.push_back({.from = bucket.from, .to = bucket.to, .count = sum});
  }
}

Time Distribution::quantile(double part) const noexcept {
  if (buckets_.empty()) return {};
  const double place = part * static_cast<double>(buckets_.back().count);
  const auto found = std::ranges::upper_bound(buckets_, place, {}, [](const JitterBucket& bucket) {
    return static_cast<double>(bucket.count);
  });
  if (found == buckets_.end()) return buckets_.back().to;
  const std::uint64_t before = found == buckets_.begin() ? 0 : std::prev(found)->count;
  const auto inside = place - static_cast<double>(before);
  return between(*found, inside / static_cast<double>(found->count - before));
}

Time Distribution::draw(Random& random) const noexcept {
  return buckets_.empty() ? Time{} : quantile(random.uniform());
}

double Distribution::mean_ns() const noexcept {
  if (buckets_.empty()) return 0;
  double sum = 0;
  std::uint64_t before = 0;
  for (const JitterBucket& bucket : buckets_) {
    const auto middle = static_cast<double>((bucket.from + bucket.to).count()) / 2;
    sum += middle * static_cast<double>(bucket.count - std::exchange(before, bucket.count));
  }
  return sum / static_cast<double>(before);
}

std::vector<JitterBucket> histogram(std::vector<Time> samples) {
  std::ranges::sort(samples);
  std::vector<JitterBucket> buckets;
  for (const Time sample : samples) {
    if (buckets.empty() || sample > buckets.back().to) {
      const Time width = std::max(Time(100), scaled(sample, 0.1));
      buckets.push_back({.from = sample, .to = sample + width, .count = 0});
    }
    ++buckets.back().count;
  }
  return buckets;
}

Jitter assumed_jitter() {
  using std::chrono::microseconds;
  // Made once: a table draws from it in each of its rows.
  static const Jitter kJitter = [] {
    Jitter assumed;
    assumed.wake_up = Distribution(log_normal(microseconds(20), 0.55, 5e-4, microseconds(500)));
    assumed.host = Distribution(log_normal(microseconds(2), 0.5, 5e-4, microseconds(500)));
    return assumed;
  }();
  return kJitter;
}

Jitter parse_jitter(const std::string& path, std::string_view text) {
  std::array<std::vector<JitterBucket>, kNames.size()> buckets;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (!(words >> name)) continue;
    const auto* const known = std::ranges::find(
        kNames, name, &std::pair<std::string_view, Distribution Jitter::*>::first);
    const auto bucket = parse_bucket(words);
    std::string extra;
    if (known == kNames.end() || !bucket || words >> extra) refuse_line(path, number);
    auto& own = buckets.at(static_cast<std::size_t>(known - kNames.begin()));
    if (!own.empty() && bucket->from < own.back().to) refuse_line(path, number);
    own.push_back(*bucket);
  }
  Jitter jitter;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    jitter.*kNames.at(i).second = Distribution(buckets.at(i));
  }
  return jitter;
}

Jitter read_jitter(const std::string& path) {
  if (path == "none") return {};
  if (path == "assumed") return assumed_jitter();
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw UsageError("--jitter '" + path + "' cannot be read");
  return parse_jitter(path, text);
}

std::string format_jitter(const Jitter& jitter) {
  std::string text = "# name from_ns to_ns count\n";
  for (const auto& [name, member] : kNames) {
    std::uint64_t before = 0;
    for (const JitterBucket& bucket : (jitter.*member).buckets()) {
      text += std::string(name) + " " + std::to_string(bucket.from.count()) + " " +
              std::to_string(bucket.to.count()) + " " +
              std::to_string(bucket.count - std::exchange(before, bucket.count)) + "\n";
    }
  }
  return text;
}

}  // namespace weir::simulate
