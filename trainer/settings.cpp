#include "trainer/settings.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "scheduler/cpu_device.hpp"
#include "trainer/batches.hpp"
#include "trainer/weights.hpp"

namespace weir {
namespace {

/// Some 10^15 elements: past any machine, and far from where products of sizes overflow.
constexpr std::uint64_t kMostCount = 1'000'000'000;
constexpr const char* kSeparator = ", ";

double parse_number(std::string_view name, std::string_view text, std::string_view want) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value)) refuse(name, text, want);
  return value;
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

void TrainSettings::use_data_defaults() {
  const auto replace = [](auto& setting, auto value) {
    if (setting.source == "default") setting.value = value;
  };
  replace(batch_size, std::uint64_t{64});
  replace(learning_rate, 0.1);
}

void TrainSettings::use_data(std::shared_ptr<const DataSet> set, Setting<std::string> directory) {
  data = std::move(set);
  data_directory = std::move(directory);
  widths = {data->train.pixels_per_image(), 256, 128, data->classes};
  if (batches.source == "default") {
    batches = {epochs.value * batches_of(data->train.count, batch_size.value), "epochs"};
  }
}

std::string TrainSettings::describe_memory() const {
  const Bytes memory = device_memory.value.count != 0 ? device_memory.value : default_cpu_memory();
  std::string text =
      "settings: " + describe_setting("device", device.value, device) + kSeparator +
      describe_setting("device-memory", without_space(format_bytes(memory)), device_memory) +
      kSeparator +
      describe_setting("budget", without_space(format_budget(pool.budget.value)), pool.budget) +
      kSeparator +
      (every_policy ? "policy=each in turn"
                    : describe_setting("policy", std::string(to_string(policy.policy.value)),
                                       policy.policy));
  // The other policies have no soft limit, and must not look as if they had one.
  if (every_policy || policy.policy.value == Policy::kThrottled) {
    text += kSeparator + describe_setting("run-ahead", format_run_ahead(policy.run_ahead.value),
                                          policy.run_ahead);
  } else if (policy.run_ahead.source != "default") {
    text += std::string(kSeparator) + "run-ahead=" + format_run_ahead(policy.run_ahead.value) +
            " (" + policy.run_ahead.source + ", not used by " +
            std::string(to_string(policy.policy.value)) + ")";
  }
  text += kSeparator + describe_setting("pool", std::string(to_string(pool.kind.value)), pool.kind);
  if (pool.kind.value != PoolKind::kUnpooled) {
    text += kSeparator + describe_setting("page", std::to_string(pool.page.value.count), pool.page);
  }
  if (pool.kind.value == PoolKind::kRound) {
    text += kSeparator +
            describe_setting("linear-cutoff", std::to_string(pool.cutoff.value), pool.cutoff);
  }
  if (pool.kind.value == PoolKind::kNaive) {
    text +=
        kSeparator + describe_setting("large-round", std::to_string(pool.large_round.value.count),
                                      pool.large_round);
  }
  if (!pool.log.value.empty()) {
    text += kSeparator + describe_setting("alloc-log", pool.log.value, pool.log);
  }
  return text;
}

std::string TrainSettings::describe() const {
  std::string text = describe_memory();
  if (data != nullptr) {
    text += kSeparator + describe_setting("data", data_directory.value, data_directory) +
            std::string(kSeparator) + "model=" + format_widths(widths) + " (data)";
    if (batches.source == "epochs") {
      text += kSeparator + describe_setting("epochs", std::to_string(epochs.value), epochs);
    }
  }
  return text + kSeparator + describe_setting("batches", std::to_string(batches.value), batches) +
         kSeparator + describe_setting("batch-size", std::to_string(batch_size.value), batch_size) +
         kSeparator + describe_setting("lr", number(learning_rate.value), learning_rate) +
         kSeparator + describe_setting("momentum", number(momentum.value), momentum) + kSeparator +
         describe_setting("seed", std::to_string(seed.value), seed);
}

}  // namespace weir
