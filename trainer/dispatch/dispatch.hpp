#pragma once

// Repeats the small experiments of the chapter on asynchronous computation in Dive into Deep
// Learning (d2l.ai) on the real scheduler: y = x + 1 many times, with one wait each or one in all,
// beside the prediction; and a matrix product, timed at its return and its end.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/setting.hpp"
#include "trainer/dispatch/dispatch_addition.hpp"
#include "trainer/dispatch/dispatch_product.hpp"

namespace weir {

struct DispatchSettings {
  Setting<std::string> device = Setting<std::string>::by_default("cpu");
  Setting<std::uint64_t> operations = Setting<std::uint64_t>::by_default(1000);
  Setting<std::uint64_t> rounds = Setting<std::uint64_t>::by_default(15);
  Setting<std::uint64_t> elements_large = Setting<std::uint64_t>::by_default(131072);
  Setting<std::uint64_t> elements_small = Setting<std::uint64_t>::by_default(1);
  /// Microseconds that the slow frontend computes before each call, like an interpreter.
  Setting<std::uint64_t> frontend = Setting<std::uint64_t>::by_default(50);
  Setting<std::uint64_t> matrix = Setting<std::uint64_t>::by_default(1024);  ///< rows and columns

  /// Returns all settings in force.
  [[nodiscard]] std::vector<SettingLine> lines() const;
};

/// Accepts `cpu`. Throws UsageError for other devices: the timed operations are host closures.
[[nodiscard]] std::string parse_dispatch_device(std::string_view name, std::string_view text);

struct CaseFigures {
  DispatchCase what{};
  std::vector<DispatchRound> rounds{};  ///< the completed ones
};

struct DispatchFigures {
  std::vector<CaseFigures> cases{};
  std::vector<ProductRound> products{};
  bool interrupted = false;
};

struct DispatchHooks {
  std::stop_token stop{};  ///< drops the current round, keeps those before it
  std::function<void(const std::string& label, std::uint64_t done, std::uint64_t all)> on_done{};
};

/// Measures. Throws OutOfMemory if the device cannot hold the tensors. Sets the BLAS to one thread.
[[nodiscard]] DispatchFigures measure_dispatch(const DispatchSettings& settings,
                                               const DispatchHooks& hooks = {});

}  // namespace weir
