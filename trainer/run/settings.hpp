#pragma once

// Everything that a training run can be told, and where each value came from.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "allocator/base/setting.hpp"
#include "allocator/pool_options.hpp"
#include "scheduler/admission/policy.hpp"
#include "tools/program/output_file.hpp"
#include "tools/timeline/recorder/settings.hpp"
#include "trainer/data/idx.hpp"
#include "trainer/data/inputs.hpp"
#include "trainer/run/device_choice.hpp"

namespace weir {

struct TrainSettings {
  /// As open_device knows it; choose_device makes one of what a user asked for.
  Setting<std::string> device = Setting<std::string>::by_default("cpu");
  /// Zero leaves it to the device.
  Setting<Bytes> device_memory = Setting<Bytes>::by_default({});
  PoolOptions pool;  ///< with the budget
  PolicyOptions policy;
  timeline::TimelineSettings timeline;  ///< no file: nothing is recorded
  bool every_policy = false;            ///< compare: the policy is set for each run
  Setting<std::uint64_t> batches = Setting<std::uint64_t>::by_default(100);
  Setting<std::uint64_t> batch_size = Setting<std::uint64_t>::by_default(1024);
  Setting<double> learning_rate = Setting<double>::by_default(0.005);
  Setting<double> momentum = Setting<double>::by_default(0);
  Setting<std::uint64_t> seed = Setting<std::uint64_t>::by_default(1);

  /// The images to train on and to test with; null: the d2l experiment's data, made on the way.
  std::shared_ptr<const DataSet> data;
  Setting<std::string> data_directory;
  Setting<std::uint64_t> epochs = Setting<std::uint64_t>::by_default(1);

  /// Input width, hidden widths, output width.
  std::vector<std::size_t> widths{512, 2048, 512, 1};
  /// How much wider the hidden layers are than the model's own; see `widen`.
  Setting<std::uint64_t> width_factor = Setting<std::uint64_t>::by_default(1);
  Setting<InputKind> inputs = Setting<InputKind>::by_default(InputKind::kHost);
  Setting<std::uint64_t> ring = Setting<std::uint64_t>::by_default(8);  ///< batches in it

  /// From the environment (DESIGN's and MXNet's variables), the rest by default. UsageError.
  [[nodiscard]] static TrainSettings from_environment(
      const Environment& environment = process_environment(),
      Setting<std::string> device = Setting<std::string>::by_default("cpu"));

  /// What is the default where there is a data set; settings that were given win.
  void use_data_defaults();
  /// Trains on this set: sets the model's widths, and `batches` from the epochs unless it was
  /// given.
  void use_data(std::shared_ptr<const DataSet> set, Setting<std::string> directory);

  /// Multiplies the hidden widths by `width_factor`: to be called once.
  void widen();

  /// Of the device: what it was given, or what it has. UsageError for a GPU that is not there.
  [[nodiscard]] Bytes total_memory() const;
  /// Of the allocation log; no path when none is written.
  [[nodiscard]] NamedPath log_file() const { return {pool.log.source, pool.log.value}; }
  /// Of the timeline; no path when none is recorded.
  [[nodiscard]] NamedPath timeline_file() const;
  /// Of the data set; none where there is no set.
  [[nodiscard]] std::vector<NamedPath> data_files() const;
  /// Throws UsageError for what cannot work, before anything is set up.
  void validate() const;
  /// `settings: device=cpu (default), budget=96MiB (--budget), …` in one line.
  [[nodiscard]] std::string describe() const;
  /// Its beginning: the device, the budget, the policy and the pool.
  [[nodiscard]] std::string describe_memory() const;
};

/// `name=value (source)`, as in `describe`.
template <typename T>
[[nodiscard]] std::string describe_setting(const std::string& name, const std::string& value,
                                           const Setting<T>& setting) {
  return name + "=" + value + " (" + setting.source + ")";
}

[[nodiscard]] std::uint64_t parse_count(std::string_view name, std::string_view text);
[[nodiscard]] double parse_rate(std::string_view name, std::string_view text);
[[nodiscard]] double parse_momentum(std::string_view name, std::string_view text);
[[nodiscard]] std::uint64_t parse_seed(std::string_view name, std::string_view text);
[[nodiscard]] std::uint64_t parse_width_factor(std::string_view name, std::string_view text);
/// A size; `validate` checks it against the device.
[[nodiscard]] Bytes parse_device_memory(std::string_view name, std::string_view text);

}  // namespace weir
