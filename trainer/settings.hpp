#pragma once

// Everything that a training run can be told, and where each value came from.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/pool_options.hpp"
#include "allocator/setting.hpp"
#include "scheduler/policy.hpp"

namespace weir {

struct TrainSettings {
  Setting<std::string> device = Setting<std::string>::by_default("cpu");
  /// Zero leaves it to the device.
  Setting<Bytes> device_memory = Setting<Bytes>::by_default({});
  PoolOptions pool;  ///< with the budget
  PolicyOptions policy;
  bool every_policy = false;  ///< compare: the policy is set for each run
  Setting<std::uint64_t> batches = Setting<std::uint64_t>::by_default(100);
  Setting<std::uint64_t> batch_size = Setting<std::uint64_t>::by_default(1024);
  Setting<double> learning_rate = Setting<double>::by_default(0.005);
  Setting<double> momentum = Setting<double>::by_default(0);
  Setting<std::uint64_t> seed = Setting<std::uint64_t>::by_default(1);

  /// Input width, hidden widths, output width.
  std::vector<std::size_t> widths{512, 2048, 512, 1};
  /// Batches made before the run and used in turn; 0: a reader makes each while training goes on.
  std::uint64_t made_beforehand = 0;

  /// From the environment (DESIGN's and MXNet's variables), the rest by default. UsageError.
  [[nodiscard]] static TrainSettings from_environment(
      const Environment& environment = process_environment());

  /// Throws UsageError for what cannot work, before anything is set up.
  void validate() const;
  /// `device=cpu (default) budget=96 MiB (--budget) …` in one line.
  [[nodiscard]] std::string describe() const;
};

[[nodiscard]] std::uint64_t parse_count(std::string_view name, std::string_view text);
[[nodiscard]] double parse_rate(std::string_view name, std::string_view text);
[[nodiscard]] double parse_momentum(std::string_view name, std::string_view text);
[[nodiscard]] std::uint64_t parse_seed(std::string_view name, std::string_view text);
[[nodiscard]] std::string parse_device(std::string_view name, std::string_view text);
[[nodiscard]] Bytes parse_device_memory(std::string_view name, std::string_view text);

}  // namespace weir
