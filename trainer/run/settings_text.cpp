// Formats the settings as one line for people.

#include "trainer/run/settings_text.hpp"

#include <cstdio>

#include "allocator/pool_kind.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/run/settings.hpp"

namespace weir {
namespace {

constexpr const char* kSeparator = ", ";

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

std::string format_compact(Bytes bytes) { return without_space(format_bytes(bytes)); }

std::string TrainSettings::describe_memory() const {
  std::string text =
      "settings: " + describe_setting("device", device.value, device) + kSeparator +
      describe_setting("device-memory", format_compact(total_memory()), device_memory) +
      kSeparator +
      describe_setting("budget", without_space(format_budget(pool.budget.value)), pool.budget) +
      kSeparator +
      (every_policy ? "policy=each in turn"
                    : describe_setting("policy", std::string(to_string(policy.policy.value)),
                                       policy.policy));
  // The other policies have no soft limit, so show none.
  if (every_policy || policy.policy.value == Policy::kThrottled) {
    text += kSeparator + describe_setting("run-ahead", format_run_ahead(policy.run_ahead.value),
                                          policy.run_ahead);
  } else if (policy.run_ahead.source != "default") {
    text += std::string(kSeparator) + "run-ahead=" + format_run_ahead(policy.run_ahead.value) +
            " (" + policy.run_ahead.source + ", not used by " +
            std::string(to_string(policy.policy.value)) + ")";
  }
  text += kSeparator + describe_setting("pool", std::string(to_string(pool.kind.value)), pool.kind);
  for (const PoolSetting* own : kind_of_pool(pool.kind.value).settings) {
    text +=
        kSeparator + describe_setting(std::string(own->name), own->text(pool), own->source(pool));
  }
  if (!pool.log.value.empty()) {
    text += kSeparator + describe_setting("alloc-log", pool.log.value, pool.log);
  }
  if (!timeline.file.value.empty()) {
    text += kSeparator + describe_setting("timeline", timeline.file.value, timeline.file);
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
  } else {
    text += kSeparator + describe_setting("inputs", std::string(to_string(inputs.value)), inputs);
    if (inputs.value == InputKind::kRing) {
      text += kSeparator + describe_setting("ring", std::to_string(ring.value), ring);
    }
  }
  text += kSeparator +
          describe_setting("width-factor", std::to_string(width_factor.value), width_factor);
  return text + kSeparator + describe_setting("batches", std::to_string(batches.value), batches) +
         kSeparator + describe_setting("batch-size", std::to_string(batch_size.value), batch_size) +
         kSeparator + describe_setting("lr", number(learning_rate.value), learning_rate) +
         kSeparator + describe_setting("momentum", number(momentum.value), momentum) + kSeparator +
         describe_setting("seed", std::to_string(seed.value), seed);
}

}  // namespace weir
