#include "scheduler/admission/policy.hpp"

#include "allocator/base/time_text.hpp"

namespace weir {
namespace {

/// Reached by every queued time, so the number of batches alone decides.
constexpr std::chrono::nanoseconds kAnyTime{0};

}  // namespace

RunAhead parse_run_ahead(std::string_view name, std::string_view text) {
  if (text == "auto") return {};
  if (text == "off") return {.batches = std::nullopt};
  if (const auto batches = parse_whole(text); batches && *batches > 0) {
    return {.batches = *batches, .time = kAnyTime};
  }
  if (const auto time = parse_time(text)) return {.batches = 1, .time = *time};
  refuse(name, text, "auto, a number of batches of 1 or more, a time such as 20ms, or off");
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
