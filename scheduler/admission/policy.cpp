#include "scheduler/admission/policy.hpp"

#include <array>

namespace weir {
namespace {

/// Reached by every queued time, so the number of batches alone decides.
constexpr std::chrono::nanoseconds kAnyTime{0};

struct TimeUnit {
  std::string_view name;
  std::int64_t nanoseconds;
};
constexpr std::array<TimeUnit, 3> kTimeUnits{
    {{"ms", 1'000'000}, {"us", 1'000}, {"s", 1'000'000'000}}};

}  // namespace

std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
  constexpr std::uint64_t kLongest = 3600ULL * 1'000'000'000ULL;
  for (const TimeUnit& unit : kTimeUnits) {
    if (!text.ends_with(unit.name)) continue;
    const auto whole = parse_whole(text.substr(0, text.size() - unit.name.size()));
    const auto factor = static_cast<std::uint64_t>(unit.nanoseconds);
    if (!whole || *whole == 0 || *whole > kLongest / factor) return std::nullopt;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(*whole * factor));
  }
  return std::nullopt;
}

RunAhead parse_run_ahead(std::string_view name, std::string_view text) {
  if (text == "auto") return {};
  if (text == "off") return {.batches = std::nullopt};
  if (const auto batches = parse_whole(text); batches && *batches > 0) {
    return {.batches = *batches, .time = kAnyTime};
  }
  if (const auto time = parse_time(text)) return {.batches = 1, .time = *time};
  refuse(name, text, "auto, a number of batches of 1 or more, a time such as 20ms, or off");
}

std::string exact_time(std::chrono::nanoseconds time) {
  const auto us = time.count() / 1000;
  if (us % 1'000'000 == 0) return std::to_string(us / 1'000'000) + "s";
  if (us % 1'000 == 0) return std::to_string(us / 1'000) + "ms";
  return std::to_string(us) + "us";
}

std::string format_run_ahead(const RunAhead& run_ahead) {
  if (!run_ahead.batches) return "off";
  if (adapts(run_ahead)) return "auto";
  if (run_ahead.time == kAnyTime) return std::to_string(*run_ahead.batches);
  return std::to_string(run_ahead.time->count() / 1000) + "us";
}

PolicyOptions PolicyOptions::from_environment(const Environment& environment) {
  PolicyOptions options;
  read_setting(options.policy, environment, {"WEIR_POLICY"}, parse_name<Policy>);
  read_setting(options.run_ahead, environment, {"WEIR_RUN_AHEAD"}, parse_run_ahead);
  return options;
}

}  // namespace weir
