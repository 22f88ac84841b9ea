#pragma once

// All settings of `weir-train wide`, and their sources.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "tools/program/output_file.hpp"
#include "trainer/checkpoint/checkpointer.hpp"
#include "trainer/run/settings.hpp"
#include "trainer/sparse/sparse_set.hpp"
#include "trainer/sparse/sparse_source.hpp"
#include "trainer/wide/wide_network.hpp"

namespace weir {

/// Bounds of a width: what the rows can be drawn for, and far below where products of sizes
/// overflow.
inline constexpr std::uint64_t kMostWideWidth = SparseDraw::kMostColumns;

enum class DataPlace : std::uint8_t {
  kHost,    ///< each batch is copied when it is its turn; each epoch has an order of its own
  kDevice,  ///< the first epoch's batches are copied before training and used in each epoch
};

enum class LayerPlace : std::uint8_t {
  kDevice,  ///< the run's device
  kCpu,     ///< the cpu device, with a pool and a budget of its own
};

struct WideSettings {
  /// The device, the budget, the pool, the policy, the batches, the rate and the seed.
  TrainSettings train;

  Setting<std::uint64_t> inputs = Setting<std::uint64_t>::by_default(250'000);
  Setting<std::vector<std::size_t>> hidden =
      Setting<std::vector<std::size_t>>::by_default({1024, 512});
  Setting<std::uint64_t> outputs = Setting<std::uint64_t>::by_default(200'000);
  Setting<double> scale = Setting<double>::by_default(1);

  Setting<SparseLoss> loss = Setting<SparseLoss>::by_default(SparseLoss::kSoftmax);
  Setting<Optimizer> optimizer = Setting<Optimizer>::by_default(Optimizer::kAdam);
  bool lazy_rows = false;
  /// Where the first layer is, with its moments. See docs/placement.md.
  Setting<LayerPlace> first_layer = Setting<LayerPlace>::by_default(LayerPlace::kDevice);
  /// Of its memory, where that is not the run's device.
  Setting<BudgetRequest> first_layer_budget = PoolOptions().budget;
  Setting<Precision> precision = Setting<Precision>::by_default(Precision::kFloat32);

  /// Of generated rows. By default 500, or a tenth of the inputs if that is less.
  Setting<std::uint64_t> nnz = Setting<std::uint64_t>::by_default(500);
  /// Where the batches of a data set lie during training.
  Setting<DataPlace> keep_data = Setting<DataPlace>::by_default(DataPlace::kHost);
  Setting<std::uint64_t> readers = Setting<std::uint64_t>::by_default(2);
  /// The least time that a reader takes for a batch: as one on slower storage does.
  Setting<std::chrono::nanoseconds> read_time = Setting<std::chrono::nanoseconds>::by_default({});
  /// Generated batches to test on.
  Setting<std::uint64_t> test_batches = Setting<std::uint64_t>::by_default(5);
  Setting<std::uint64_t> pace = Setting<std::uint64_t>::by_default(50);

  Setting<std::string> checkpoint = Setting<std::string>::by_default({});  ///< empty: none
  Setting<CheckpointSchedule> every =
      Setting<CheckpointSchedule>::by_default({.batches = 0, .time = std::chrono::minutes(10)});
  bool resume = false;  ///< go on from the checkpoint

  /// What several ranks share; none: one process trains alone.
  Setting<std::optional<Parallel>> parallel = Setting<std::optional<Parallel>>::by_default({});
  Setting<Bytes> bucket = Setting<Bytes>::by_default(kDefaultBucket);  ///< see make_buckets

  /// Null: generated batches.
  std::shared_ptr<const SparseSet> data;
  Setting<std::string> data_directory;
  Setting<std::uint64_t> epochs = Setting<std::uint64_t>::by_default(1);

  /// Reads the environment; the rest by default. Throws UsageError.
  [[nodiscard]] static WideSettings from_environment(const Environment& environment,
                                                     Setting<std::string> device);

  /// Reads the data set. Its widths are the network's, unless those are given. Throws UsageError.
  void read_data(Setting<std::string> directory);
  /// Fills in what depends on other settings, and checks all. Call it last. Throws UsageError.
  void settle();

  /// Inputs, hidden widths, outputs: each multiplied by the scale and rounded to the nearest whole
  /// number, at least 1. A data set's own widths are not scaled.
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] OptimizerOptions optimizer_options() const;
  /// The rows that are generated without a data set, or written by --make.
  [[nodiscard]] SparseDraw draw() const;
  /// Generated batches end with Cancelled once `stop` is requested.
  [[nodiscard]] SparseSource training_source(const std::stop_token& stop = {}) const;
  /// Batches to test on; their rows together are `test_rows`. As above.
  [[nodiscard]] SparseSource test_source(const std::stop_token& stop = {}) const;
  [[nodiscard]] std::uint64_t test_rows() const noexcept;

  /// Whether the first layer is on another device than the rest.
  [[nodiscard]] bool is_placed() const noexcept { return first_layer.value != LayerPlace::kDevice; }
  /// Returns the settings of that device.
  [[nodiscard]] TrainSettings first_layer_settings() const;

  /// Batches that the device keeps; 0: none.
  [[nodiscard]] std::uint64_t kept_batches() const noexcept;

  [[nodiscard]] std::vector<NamedPath> data_files() const;
  /// The checkpoint's file, and those beside it. Empty if there is none.
  [[nodiscard]] std::vector<NamedPath> checkpoint_files() const;
  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;

 private:
  void check_widths() const;
  void check_entries() const;
  void check_checkpoint() const;
  void check_placement() const;
  [[nodiscard]] std::size_t scaled(std::uint64_t width) const noexcept;
};

/// Parses `1024,512`.
[[nodiscard]] std::vector<std::size_t> parse_hidden(std::string_view name, std::string_view text);
/// Parses a number above 0 and at most 16.
[[nodiscard]] double parse_scale(std::string_view name, std::string_view text);
/// Parses a time such as `20ms`, at most 10 s: a run that is stopped waits for its readers.
[[nodiscard]] std::chrono::nanoseconds parse_read_time(std::string_view name,
                                                       std::string_view text);
[[nodiscard]] constexpr auto names_of(SparseLoss /*of*/) noexcept {
  return name_table("softmax", "logistic");
}
[[nodiscard]] constexpr auto names_of(Optimizer /*of*/) noexcept {
  return name_table("sgd", "momentum", "adam", "adamax");
}
[[nodiscard]] constexpr auto names_of(DataPlace /*of*/) noexcept {
  return name_table("host", "device");
}
[[nodiscard]] constexpr auto names_of(LayerPlace /*of*/) noexcept {
  return name_table("device", "cpu");
}
[[nodiscard]] constexpr auto names_of(Precision /*of*/) noexcept {
  return name_table("float32", "tf32", "bf16", "fp16");
}

}  // namespace weir
