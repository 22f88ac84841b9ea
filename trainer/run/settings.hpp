#pragma once

// All settings of a training run, and their sources.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/names.hpp"
#include "allocator/base/setting.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/share/share_setting.hpp"
#include "scheduler/admission/policy.hpp"
#include "tools/program/output_file.hpp"
#include "tools/timeline/recorder/settings.hpp"
#include "trainer/data/idx.hpp"

namespace weir {

/// The sources of generated batches.
enum class InputKind : std::uint8_t {
  kHost,   ///< a reader makes them in host memory during the run; each is copied
  kRing,   ///< some are made in host memory before the run and copied in turn
  kDrawn,  ///< the device draws them, beside its other work
};

/// How the memory of a batch is found.
enum class StaticMemory : std::uint8_t {
  kNone,   ///< each tensor asks the pool
  kAlloc,  ///< a batch of a shape that recurs lies in one arena, and is one operation
  kShape,  ///< the same, and a GPU captures it
};

[[nodiscard]] constexpr auto names_of(InputKind /*of*/) noexcept {
  return name_table("host", "ring", "drawn");
}

struct TrainSettings {
  /// A name for open_device; choose_device derives it from the user's.
  Setting<std::string> device = Setting<std::string>::by_default("cpu");
  /// Zero: the device's default.
  Setting<Bytes> device_memory = Setting<Bytes>::by_default({});
  PoolOptions pool;  ///< includes the budget
  PolicyOptions policy;
  ShareSettings share;                  ///< whose budget is the pool's; not used by compare
  timeline::TimelineSettings timeline;  ///< without a file nothing is recorded
  bool every_policy = false;            ///< compare: the policy is set for each run
  Setting<std::uint64_t> batches = Setting<std::uint64_t>::by_default(100);
  Setting<std::uint64_t> batch_size = Setting<std::uint64_t>::by_default(1024);
  Setting<double> learning_rate = Setting<double>::by_default(0.005);
  Setting<double> momentum = Setting<double>::by_default(0);
  Setting<std::uint64_t> seed = Setting<std::uint64_t>::by_default(1);

  /// Images for training and tests; null: the d2l experiment's data, generated during the run.
  std::shared_ptr<const DataSet> data;
  Setting<std::string> data_directory;
  Setting<std::uint64_t> epochs = Setting<std::uint64_t>::by_default(1);

  /// Input width, hidden widths, output width.
  std::vector<std::size_t> widths{512, 2048, 512, 1};
  /// Multiplies the hidden widths; see `widen`.
  Setting<std::uint64_t> width_factor = Setting<std::uint64_t>::by_default(1);
  Setting<InputKind> inputs = Setting<InputKind>::by_default(InputKind::kHost);
  Setting<std::uint64_t> ring = Setting<std::uint64_t>::by_default(8);  ///< batches in it
  Setting<StaticMemory> memory = Setting<StaticMemory>::by_default(StaticMemory::kNone);

  /// Reads the environment (Weir's and MXNet's variables); the rest by default. Throws
  /// UsageError.
  [[nodiscard]] static TrainSettings from_environment(
      const Environment& environment = process_environment(),
      Setting<std::string> device = Setting<std::string>::by_default("cpu"));

  /// Sets the defaults for a data set; given settings win.
  void use_data_defaults();
  /// Selects this set: sets the model's widths, and `batches` from the epochs unless given.
  void use_data(std::shared_ptr<const DataSet> set, Setting<std::string> directory);

  /// Multiplies the hidden widths by `width_factor`. Call once.
  void widen();

  /// Whether the run shares its budget. `compare` does not: each of its runs measures one policy.
  [[nodiscard]] bool shares() const noexcept { return share.is_on() && !every_policy; }
  /// Returns the device's memory: given, or its own. Throws UsageError for a GPU that does not
  /// exist.
  [[nodiscard]] Bytes total_memory() const;
  /// The allocation log; no path if none is written.
  [[nodiscard]] NamedPath log_file() const { return {pool.log.source, pool.log.value}; }
  /// The data set; empty if there is none.
  [[nodiscard]] std::vector<NamedPath> data_files() const;
  /// Throws UsageError for settings that cannot work, before anything is set up.
  void validate() const;
  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;
  /// Returns the first of them: the device, the budget, the policy and the pool.
  [[nodiscard]] std::vector<SettingLine> memory_lines() const;
};

/// Returns the shortest text that is read as exactly this number, such as `0.001`.
[[nodiscard]] std::string format_setting(double value);

/// Parses whole numbers within limits. Throws UsageError otherwise.
struct WholeNumber {
  std::uint64_t least = 1;
  std::uint64_t most = 1'000'000;

  [[nodiscard]] std::uint64_t operator()(std::string_view name, std::string_view text) const;
};
[[nodiscard]] std::uint64_t parse_count(std::string_view name, std::string_view text);
[[nodiscard]] double parse_number(std::string_view name, std::string_view text,
                                  std::string_view want);
[[nodiscard]] double parse_rate(std::string_view name, std::string_view text);
[[nodiscard]] double parse_momentum(std::string_view name, std::string_view text);
[[nodiscard]] std::uint64_t parse_seed(std::string_view name, std::string_view text);
[[nodiscard]] std::uint64_t parse_width_factor(std::string_view name, std::string_view text);
/// Parses a size; `validate` checks it against the device.
[[nodiscard]] Bytes parse_device_memory(std::string_view name, std::string_view text);

// Chooses a program's device and its memory, and makes the host ready for it. Thread-safe.

/// Checks for `cpu`, `cuda`, `cuda:N` or `auto`. Otherwise throws UsageError with `name`.
[[nodiscard]] std::string parse_device(std::string_view name, std::string_view text);

/// Returns a device for open_device: `auto` becomes `cuda` if a GPU is usable and otherwise `cpu`,
/// and the source says why. Throws UsageError (one line with what to do) for a GPU that does not
/// exist.
[[nodiscard]] Setting<std::string> choose_device(const Setting<std::string>& asked);

/// Returns the most memory that the device can get: the machine's, or the GPU's. Throws UsageError
/// for a GPU that does not exist.
[[nodiscard]] Bytes most_device_memory(std::string_view device);
/// Returns the default memory: half of the machine's, or all of the GPU's. UsageError as above.
[[nodiscard]] Bytes default_device_memory(std::string_view device);

/// Gives the BLAS its memory, if the device is on the host; a GPU does not need it. Call it before
/// the run starts a thread: where address space is short, a thread's first allocation may take what
/// was free when the BLAS looked, and OpenBLAS then tries again forever. Later calls do nothing.
/// Throws BlasMemoryError.
void start_blas(std::string_view device);

/// Returns which of MXNet's variables apply to it. Throws UsageError for an unknown name.
[[nodiscard]] MxnetContext mxnet_context(std::string_view device);

}  // namespace weir
