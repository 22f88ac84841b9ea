#include "trainer/settings.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "scheduler/cpu_device.hpp"

namespace weir {
namespace {

/// Some 10^15 elements: past any machine, and far from where products of sizes overflow.
constexpr std::uint64_t kMostCount = 1'000'000'000;

double parse_number(std::string_view name, std::string_view text, std::string_view want) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) refuse(name, text, want);
  return value;
}

template <typename T>
std::string entry(const char* name, const std::string& value, const Setting<T>& setting) {
  return std::string(name) + "=" + value + " (" + setting.source + ")";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string without_space(std::string text) {
  std::erase(text, ' ');
  return text;
}

}  // namespace

std::uint64_t parse_count(std::string_view name, std::string_view text) {
  const auto count = parse_whole(text);
  if (!count || *count == 0 || *count > kMostCount) {
    refuse(name, text, "a whole number from 1 to 1000000000");
  }
  return *count;
}

double parse_rate(std::string_view name, std::string_view text) {
  constexpr std::string_view kWant = "a number above zero that a float holds, such as 0.005";
  const double rate = parse_number(name, text, kWant);
  // Training computes in float: a rate that is nothing or infinite there would train nothing.
  using Float = std::numeric_limits<float>;
  if (rate < double{Float::denorm_min()} || rate > double{Float::max()}) refuse(name, text, kWant);
  return rate;
}

double parse_momentum(std::string_view name, std::string_view text) {
  constexpr std::string_view kWant = "a number from 0 up to, but not, 1";
  const double momentum = parse_number(name, text, kWant);
  if (momentum < 0 || static_cast<float>(momentum) >= 1) refuse(name, text, kWant);
  return momentum;
}

std::uint64_t parse_seed(std::string_view name, std::string_view text) {
  const auto seed = parse_whole(text);
  if (!seed) refuse(name, text, "a whole number from 0 to 2^64-1");
  return *seed;
}

std::string parse_device(std::string_view name, std::string_view text) {
  if (text != "cpu") refuse(name, text, "cpu");
  return std::string(text);
}

Bytes parse_device_memory(std::string_view name, std::string_view text) {
  const auto memory = parse_bytes(text);
  if (!memory || memory->count == 0 || *memory > machine_memory()) {
    refuse(name, text,
           "a size above zero such as 2GiB, at most what the machine has, " +
               format_bytes(machine_memory()));
  }
  return *memory;
}

TrainSettings TrainSettings::from_environment(const Environment& environment) {
  TrainSettings settings;
  settings.pool = PoolOptions::from_environment(MxnetContext::kCpu, environment);
  settings.policy = PolicyOptions::from_environment(environment);
  return settings;
}

void TrainSettings::validate() const {
  pool.validate();
  const Bytes total = device_memory.value.count != 0 ? device_memory.value : default_cpu_memory();
  (void)resolve_budget(pool.budget.value, total, "budget (" + pool.budget.source + ")");
}

std::string TrainSettings::describe() const {
  const Bytes memory = device_memory.value.count != 0 ? device_memory.value : default_cpu_memory();
  const std::string sep = ", ";
  std::string text =
      "settings: " + entry("device", device.value, device) + sep +
      entry("device-memory", without_space(format_bytes(memory)), device_memory) + sep +
      entry("budget", without_space(format_budget(pool.budget.value)), pool.budget) + sep +
      (every_policy ? "policy=each in turn"
                    : entry("policy", std::string(to_string(policy.policy.value)), policy.policy)) +
      sep + entry("run-ahead", format_run_ahead(policy.run_ahead.value), policy.run_ahead) + sep +
      entry("pool", std::string(to_string(pool.kind.value)), pool.kind);
  if (pool.kind.value != PoolKind::kUnpooled) {
    text += sep + entry("page", std::to_string(pool.page.value.count), pool.page);
  }
  if (pool.kind.value == PoolKind::kRound) {
    text += sep + entry("linear-cutoff", std::to_string(pool.cutoff.value), pool.cutoff);
  }
  if (pool.kind.value == PoolKind::kNaive) {
    text +=
        sep + entry("large-round", std::to_string(pool.large_round.value.count), pool.large_round);
  }
  text += sep + entry("batches", std::to_string(batches.value), batches) + sep +
          entry("batch-size", std::to_string(batch_size.value), batch_size) + sep +
          entry("lr", number(learning_rate.value), learning_rate) + sep +
          entry("momentum", number(momentum.value), momentum) + sep +
          entry("seed", std::to_string(seed.value), seed);
  return text;
}

}  // namespace weir
