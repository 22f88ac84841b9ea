#include "trainer/wide/wide_agreement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <optional>
#include <span>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/setting.hpp"
#include "trainer/checkpoint/checkpoint_format.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/data/input_file.hpp"

namespace weir {
namespace {

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

void require_rows(const WideSettings& settings, std::uint64_t ranks) {
  const Setting<std::uint64_t>& rows = settings.train.batch_size;
  const std::string wanted = "at least a row for each of the " + std::to_string(ranks) + " ranks";
  if (rows.value < ranks) refuse(rows.source, std::to_string(rows.value), wanted);
  if (settings.data == nullptr) return;
  const std::uint64_t left = settings.data->train.rows() % rows.value;
  if (left == 0 || left >= ranks) return;
  throw UsageError(settings.data_directory.source + ": the last batch of an epoch has " +
                   std::to_string(left) + (left == 1 ? " row" : " rows") +
                   ", but --parallel data needs " + wanted + ": give another --batch-size");
}

void require_columns(const WideSettings& settings, std::uint64_t ranks) {
  const std::vector<std::size_t> widths = settings.widths();
  if (std::min(widths.front(), widths.back()) < ranks) {
    throw UsageError("--parallel model needs an input and an output for each of the " +
                     std::to_string(ranks) + " ranks: this network has " +
                     std::to_string(widths.front()) + " and " + std::to_string(widths.back()));
  }
  if (!settings.checkpoint.value.empty()) {
    throw UsageError(settings.checkpoint.source +
                     " does not work with --parallel model, where no rank has all weights: use "
                     "--parallel data");
  }
}

/// Returns the file's last checksum, which is of all its contents.
std::string last_checksum(const std::string& file) {
  std::array<char, kChecksumBytes> bytes{};
  std::ifstream in(file, std::ios::binary);
  in.seekg(-static_cast<std::streamoff>(bytes.size()), std::ios::end);
  in.read(bytes.data(), bytes.size());
  return std::to_string(std::bit_cast<std::uint32_t>(bytes));
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
          {"lr", format_setting(options.lr)},
          {"momentum", format_setting(options.momentum)},
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

void require_ranks(const WideSettings& settings, int ranks) {
  if (!settings.parallel.value) {
    if (ranks == 1) return;
    throw UsageError(
        std::to_string(ranks) +
        " ranks were started: --parallel data or --parallel model says what they share");
  }
  const auto count = static_cast<std::uint64_t>(ranks);
  if (*settings.parallel.value == Parallel::kData) return require_rows(settings, count);
  require_columns(settings, count);
}

std::vector<AgreedField> agreed_fields(const WideSettings& settings) {
  std::vector<AgreedField> fields;
  for (const Figure& figure : checkpoint_settings(settings)) {
    std::string name = figure.name == "data" ? "the " : "--";
    fields.push_back({name.append(figure.name), figure.value});
  }
  const auto number = [&fields](const char* name, std::uint64_t value) {
    fields.push_back({name, std::to_string(value)});
  };
  fields.push_back({"--parallel", std::string(to_string(settings.parallel.value.value()))});
  number("--bucket", settings.bucket.value.count);
  number("--batches", settings.train.batches.value);
  number("the rows to test on", settings.test_rows());
  if (settings.data != nullptr) {
    fields.push_back({"the data to test on", describe_rows(settings.data->test)});
  }
  if (settings.resume) {
    const CheckpointReader saved(settings.checkpoint.source, settings.checkpoint.value);
    number("the checkpoint's batch", saved.number(kBatchPosition));
    fields.push_back({"the checkpoint's checksum", last_checksum(settings.checkpoint.value)});
  }
  return fields;
}

WideSplit split_of(const WideSettings& settings, const Communicator& ranks) {
  return {.widths = settings.widths(),
          .loss = settings.loss.value,
          .rows = settings.train.batch_size.value,
          .parallel = settings.parallel.value.value(),
          .bucket = settings.bucket.value,
          .rank = ranks.rank(),
          .ranks = ranks.size()};
}

}  // namespace weir
