#include "trainer/wide/wide_settings.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "allocator/base/time_text.hpp"
#include "tools/program/numbers.hpp"
#include "trainer/checkpoint/checkpoint_reader.hpp"
#include "trainer/data/batches.hpp"
#include "trainer/model/weights.hpp"
#include "trainer/wide/wide_agreement.hpp"

namespace weir {
namespace {

/// Generated test rows are apart from all training rows.
constexpr std::uint64_t kFirstTestRow = std::uint64_t{1} << 48U;

bool is_default(const auto& setting) { return setting.source == "default"; }

/// The rates that work for each optimizer: PyTorch's defaults where it has one.
double default_rate(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 0.1;
    case Optimizer::kMomentum:
      return 0.01;
    case Optimizer::kAdam:
      return 1e-3;
    case Optimizer::kAdamax:
      return 2e-3;
  }
  return 0;
}

}  // namespace

std::vector<std::size_t> parse_hidden(std::string_view name, std::string_view text) {
  constexpr std::size_t kMostLayers = 16;
  std::vector<std::size_t> widths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto width = parse_whole(text.substr(begin, end - begin));
    if (!width || *width == 0 || *width > kMostWideWidth || widths.size() == kMostLayers) {
      refuse(name, text,
             "1 to 16 widths from 1 to " + std::to_string(kMostWideWidth) + ", such as 1024,512");
    }
    widths.push_back(*width);
    begin = end + 1;
  }
  return widths;
}

double parse_scale(std::string_view name, std::string_view text) {
  constexpr double kMostScale = 16;
  constexpr std::string_view kWant = "a number above 0 and at most 16, such as 0.02";
  const double scale = parse_number(name, text, kWant);
  if (!(scale > 0) || scale > kMostScale) refuse(name, text, kWant);
  return scale;
}

std::chrono::nanoseconds parse_read_time(std::string_view name, std::string_view text) {
  const auto time = parse_time(text);
  if (!time || *time > std::chrono::seconds(10)) {
    refuse(name, text, "a time from 1us to 10s, such as 500us, 20ms or 1s");
  }
  return *time;
}

WideSettings WideSettings::from_environment(const Environment& environment,
                                            Setting<std::string> device) {
  WideSettings settings;
  settings.train = TrainSettings::from_environment(environment, std::move(device));
  settings.train.timeline = timeline::TimelineSettings::from_environment(environment);
  settings.train.batches = Setting<std::uint64_t>::by_default(500);
  settings.train.batch_size = Setting<std::uint64_t>::by_default(128);
  settings.train.momentum = Setting<double>::by_default(0.9);
  settings.bucket = bucket_setting(environment);
  return settings;
}

std::size_t WideSettings::scaled(std::uint64_t width) const noexcept {
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(std::llround(static_cast<double>(width) * scale.value)));
}

std::vector<std::size_t> WideSettings::widths() const {
  const auto outer = [this](const Setting<std::uint64_t>& width) {
    return data != nullptr ? width.value : scaled(width.value);
  };
  std::vector<std::size_t> all{outer(inputs)};
  for (const std::size_t width : hidden.value) all.push_back(scaled(width));
  all.push_back(outer(outputs));
  return all;
}

void WideSettings::read_data(Setting<std::string> directory) {
  data_directory = std::move(directory);
  const auto given = [this](const Setting<std::uint64_t>& width) -> std::size_t {
    return is_default(width) ? 0 : scaled(width.value);
  };
  data = std::make_shared<const SparseSet>(
      read_sparse_set(data_directory.source, data_directory.value,
                      {.columns = given(inputs), .classes = given(outputs)}));
  if (data->train.rows() == 0 || data->test.rows() == 0) {
    throw UsageError(data_directory.source + ": " + data_directory.value +
                     ": a data set needs rows to train on and rows to test on");
  }
  inputs = {data->train.columns, data_directory.source};
  outputs = {data->train.classes, data_directory.source};
  if (is_default(train.batches)) {
    train.batches = {epochs.value * batches_of(data->train.rows(), train.batch_size.value),
                     "epochs"};
  }
}

void WideSettings::settle() {
  if (is_default(train.learning_rate)) {
    train.learning_rate.value = default_rate(optimizer.value);
  }
  if (!is_default(train.momentum) && optimizer.value != Optimizer::kMomentum) {
    throw UsageError(train.momentum.source + " needs --optimizer momentum: " +
                     std::string(to_string(optimizer.value)) + " has no momentum");
  }
  if (lazy_rows && moments_of(optimizer.value) == 0) {
    throw UsageError("--lazy-rows needs an optimizer with moments: sgd changes touched rows only");
  }
  check_widths();
  if (is_default(nnz)) {
    nnz.value = std::clamp<std::uint64_t>(widths().front() / 10, 1, nnz.value);
  }
  if (data == nullptr) {
    if (keep_data.value == DataPlace::kDevice) {
      throw UsageError(keep_data.source + " device needs --data: generated batches do not recur");
    }
    check_entries();
  }
  if (bucket.source == "--bucket" && parallel.value != Parallel::kData) {
    throw UsageError("--bucket needs --parallel data, which alone reduces gradients");
  }
  check_checkpoint();
  check_placement();
  train.validate();
}

void WideSettings::check_placement() const {
  if (!is_placed()) {
    if (is_default(first_layer_budget)) return;
    throw UsageError(first_layer_budget.source + " needs --first-layer cpu");
  }
  if (parallel.value) {
    throw UsageError(first_layer.source + " does not work with --parallel: give one of them");
  }
  if (!checkpoint.value.empty()) {
    throw UsageError(checkpoint.source + " cannot save a network on two devices: leave out " +
                     first_layer.source + " or the checkpoint");
  }
  first_layer_settings().validate();
}

TrainSettings WideSettings::first_layer_settings() const {
  TrainSettings settings = train;
  settings.device = {std::string(to_string(first_layer.value)), first_layer.source};
  settings.device_memory = Setting<Bytes>::by_default({});
  settings.pool.budget = first_layer_budget;
  settings.pool.log.value.clear();  // it is of the run's device, and so is a shared budget
  settings.share = {};
  return settings;
}

void WideSettings::check_widths() const {
  const std::string want = "widths of at most " + std::to_string(kMostWideWidth);
  const std::vector<std::size_t> all = widths();
  if (data != nullptr && std::max(all.front(), all.back()) > kMostWideWidth) {
    refuse(data_directory.source, data_directory.value,
           want + "; this data set has " + format_count(all.front(), "column") + " and " +
               format_count(all.back(), "label"));
  }
  if (std::ranges::max(all) > kMostWideWidth) {
    refuse(scale.source, format_setting(scale.value), want);
  }
}

void WideSettings::check_entries() const {
  const std::size_t most = std::max<std::size_t>(widths().front() * 2 / 3, 1);
  if (nnz.value > most) {
    refuse(nnz.source, std::to_string(nnz.value),
           "at most two thirds of the inputs, which are " + std::to_string(most));
  }
  (void)draw();  // refuses what else cannot be drawn
}

void WideSettings::check_checkpoint() const {
  if (checkpoint.value.empty()) {
    if (resume) throw UsageError("--resume needs --checkpoint: it names the file");
    if (!is_default(every)) throw UsageError(every.source + " needs --checkpoint");
    return;
  }
  if (resume) {
    (void)CheckpointReader(checkpoint.source, checkpoint.value);  // refuses what is no checkpoint
    return;
  }
  if (checkpoint.value == "-") refuse(checkpoint.source, checkpoint.value, "a regular file");
  std::error_code error;
  if (std::filesystem::is_regular_file(checkpoint.value, error)) {
    refuse(checkpoint.source, checkpoint.value,
           "a new file: this one exists, and --resume goes on from it");
  }
  // Writing into a device or a pipe would keep nothing, or wait for a reader.
  if (std::filesystem::exists(checkpoint.value, error)) {
    refuse(checkpoint.source, checkpoint.value, "a regular file");
  }
}

OptimizerOptions WideSettings::optimizer_options() const {
  return {.optimizer = optimizer.value,
          .lr = train.learning_rate.value,
          .momentum = train.momentum.value};
}

SparseDraw WideSettings::draw() const {
  SparseShape shape{.columns = widths().front(), .classes = widths().back(), .nnz = nnz.value};
  shape.most_labels = std::min(shape.most_labels, shape.classes);
  return {shape, train.seed.value};
}

SparseSource WideSettings::training_source(const std::stop_token& stop) const {
  const std::uint64_t rows = train.batch_size.value;
  if (data == nullptr) return generated_rows(draw(), rows, stop);
  return shuffled_rows({data, &data->train}, rows, train.seed.value);
}

SparseSource WideSettings::test_source(const std::stop_token& stop) const {
  const std::uint64_t rows = train.batch_size.value;
  if (data != nullptr) return ordered_rows(data->test, rows);
  return [source = generated_rows(draw(), rows, stop), first = kFirstTestRow / rows](
             std::uint64_t index, SparseRows& batch) { source(first + index, batch); };
}

std::uint64_t WideSettings::kept_batches() const noexcept {
  if (data == nullptr || keep_data.value == DataPlace::kHost) return 0;
  return batches_of(data->train.rows(), train.batch_size.value);
}

std::uint64_t WideSettings::test_rows() const noexcept {
  return data != nullptr ? data->test.rows() : test_batches.value * train.batch_size.value;
}

std::vector<NamedPath> WideSettings::data_files() const {
  if (data == nullptr) return {};
  const std::filesystem::path folder = data_directory.value;
  return {{data_directory.source, (folder / kSparseTrainFile).string()},
          {data_directory.source, (folder / kSparseTestFile).string()}};
}

std::vector<NamedPath> WideSettings::checkpoint_files() const {
  if (checkpoint.value.empty()) return {};
  std::vector<NamedPath> files;
  for (const char* const suffix : {"", ".partial", ".lock"}) {
    files.push_back({checkpoint.source, checkpoint.value + suffix});
  }
  return files;
}

std::vector<SettingLine> WideSettings::lines() const {
  std::vector<SettingLine> lines = train.memory_lines();
  const auto add = [&lines](const char* name, std::string value, const auto& setting) {
    lines.push_back(setting_line(name, std::move(value), setting));
  };
  const auto count = [&add](const char* name, const Setting<std::uint64_t>& setting) {
    add(name, std::to_string(setting.value), setting);
  };
  lines.push_back({"network", format_widths(widths()), "widths and scale"});
  add("scale", format_setting(scale.value), scale);
  add("loss", std::string(to_string(loss.value)), loss);
  add("optimizer", std::string(to_string(optimizer.value)), optimizer);
  add("precision", std::string(to_string(precision.value)), precision);
  if (lazy_rows) lines.push_back({"lazy-rows", "1", "--lazy-rows"});
  if (is_placed()) {
    add("first-layer", std::string(to_string(first_layer.value)), first_layer);
    add("first-layer-budget", exact_budget(first_layer_budget.value), first_layer_budget);
  }
  add("lr", format_setting(train.learning_rate.value), train.learning_rate);
  if (optimizer.value == Optimizer::kMomentum) {
    add("momentum", format_setting(train.momentum.value), train.momentum);
  }
  if (data != nullptr) {
    add("data", data_directory.value, data_directory);
    add("keep-data", std::string(to_string(keep_data.value)), keep_data);
  } else {
    count("nnz", nnz);
    count("test-batches", test_batches);
  }
  count("readers", readers);
  if (read_time.value.count() != 0) {
    add("read-time", exact_time(read_time.value), read_time);
  }
  if (!checkpoint.value.empty()) {
    add("checkpoint", checkpoint.value, checkpoint);
    add("every", format_every(every.value), every);
    if (resume) lines.push_back({"resume", "1", "--resume"});
  }
  if (parallel.value) add("parallel", std::string(to_string(*parallel.value)), parallel);
  if (parallel.value == Parallel::kData) add("bucket", exact_bytes(bucket.value), bucket);
  count("batches", train.batches);
  count("batch-size", train.batch_size);
  count("seed", train.seed);
  return lines;
}

}  // namespace weir
