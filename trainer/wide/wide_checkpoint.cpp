#include "trainer/wide/wide_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "trainer/checkpoint/checksum.hpp"

namespace weir {
namespace {

/// Returns the shortest text that is this number again.
std::string exact(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string widths_of(const WideSettings& settings) {
  std::string text;
  for (const std::size_t width : settings.widths()) {
    text += (text.empty() ? "" : "-") + std::to_string(width);
  }
  return text;
}

template <typename T>
void add_to(Checksum& checksum, const std::vector<T>& values) {
  checksum.add(std::as_bytes(std::span(values)));
}

std::string data_of(const WideSettings& settings) {
  if (settings.data == nullptr) return "generated-" + std::to_string(settings.nnz.value);
  return std::string(to_string(settings.keep_data.value)) + "-" +
         describe_rows(settings.data->train);
}

struct TimeUnit {
  std::string_view name;
  std::chrono::seconds seconds;
};
constexpr std::array kUnits{TimeUnit{"h", std::chrono::hours(1)},
                            TimeUnit{"min", std::chrono::minutes(1)},
                            TimeUnit{"s", std::chrono::seconds(1)}};
constexpr std::uint64_t kMostUnits = 1'000'000'000;

std::optional<std::uint64_t> count_of(std::string_view text) {
  const auto count = parse_whole(text);
  return count && *count > 0 && *count <= kMostUnits ? count : std::nullopt;
}

/// Sets one of the two conditions. Returns whether `text` is one that is not yet set.
bool add_condition(CheckpointSchedule& schedule, std::string_view text) {
  for (const auto& [name, seconds] : kUnits) {
    if (!text.ends_with(name)) continue;
    const auto count = count_of(text.substr(0, text.size() - name.size()));
    // 290 years in nanoseconds are the most that there are.
    if (!count || schedule.time.count() != 0 || *count > kMostUnits / 3600) return false;
    schedule.time = seconds * *count;
    return true;
  }
  const auto count = count_of(text);
  if (!count || schedule.batches != 0) return false;
  schedule.batches = *count;
  return true;
}

}  // namespace

std::string describe_rows(const SparseRows& rows) {
  Checksum checksum;
  add_to(checksum, rows.starts);
  add_to(checksum, rows.indices);
  add_to(checksum, rows.values);
  add_to(checksum, rows.label_starts);
  add_to(checksum, rows.labels);
  return std::to_string(rows.rows()) + "-" + std::to_string(checksum.value());
}

Figures checkpoint_settings(const WideSettings& settings) {
  const OptimizerOptions options = settings.optimizer_options();
  return {{"widths", widths_of(settings)},
          {"loss", std::string(to_string(settings.loss.value))},
          {"optimizer", std::string(to_string(options.optimizer))},
          {"lr", exact(options.lr)},
          {"momentum", exact(options.momentum)},
          {"rows", settings.lazy_rows ? "touched" : "all"},
          {"precision", std::string(to_string(settings.precision.value))},
          {"batch-size", std::to_string(settings.train.batch_size.value)},
          {"seed", std::to_string(settings.train.seed.value)},
          {"data", data_of(settings)}};
}

CheckpointState checkpoint_state(Figures settings, const WideNetwork& network, std::uint64_t done) {
  CheckpointState state{.settings = std::move(settings),
                        .position = {{kBatchPosition, std::to_string(done)}},
                        .tensors = {{"step-state", network.step_state()}}};
  for (const Parameter& parameter : network.parameters()) {
    state.tensors.push_back({parameter.name, parameter.value});
    if (parameter.first) state.tensors.push_back({parameter.name + ".1", parameter.first});
    if (parameter.second) state.tensors.push_back({parameter.name + ".2", parameter.second});
  }
  return state;
}

CheckpointSchedule parse_every(std::string_view name, std::string_view text) {
  CheckpointSchedule schedule;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (!add_condition(schedule, text.substr(begin, end - begin))) {
      refuse(name, text, "batches such as 200, a time such as 30s, 5min or 2h, or 200,5min");
    }
    begin = end + 1;
  }
  return schedule;
}

std::string format_every(const CheckpointSchedule& schedule) {
  std::string text;
  if (schedule.batches != 0) text = std::to_string(schedule.batches);
  if (schedule.time.count() != 0) {
    text +=
        (text.empty() ? "" : ",") +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(schedule.time).count()) +
        "s";
  }
  return text;
}

}  // namespace weir
