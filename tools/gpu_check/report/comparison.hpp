#pragma once

// What `weir-train compare` found on the GPU, for the conditions and the page.

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace weir::gpu_check {

/// A comparison that tools/gpu-check runs as the step of this name.
struct Comparison {
  const char* step;
  const char* title;
};
inline constexpr std::array kComparisons{
    Comparison{"compare_x1_drawn", "d2l size, inputs drawn on the device"},
    Comparison{"compare_x1_ring", "d2l size, inputs from a ring of pinned batches"},
    Comparison{"compare_x16_drawn", "16 times the width, inputs drawn on the device"},
    Comparison{"compare_x16_ring", "16 times the width, inputs from a ring of pinned batches"},
};

/// Of runs side by side: the median, the smallest and the largest.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

struct PolicyLine {
  std::string policy;
  double batches_per_second = 0;
  std::optional<double> ratio;  ///< to unbounded with enough memory; median of the pairs
  double ratio_low = 0;
  double ratio_high = 0;
  std::optional<Spread> to_plain;    ///< of throttled, to the training loop without Weir
  double host_us = 0;                ///< to submit a batch, without the time held back
  std::optional<double> idle_share;  ///< not known of the loop without Weir
  double peak_reserved_bytes = 0;
  std::string outcome = "not run";

  [[nodiscard]] bool ran() const { return batches_per_second > 0 || peak_reserved_bytes > 0; }
};

struct ComparisonFigures {
  std::string settings;
  PolicyLine reference;
  PolicyLine plain;  ///< the loop without Weir; its outcome says why where there is none
  std::vector<PolicyLine> policies;
  bool identical = false;
  std::size_t finished_runs = 0;

  /// Throws std::out_of_range for a policy that is not there.
  [[nodiscard]] const PolicyLine& policy(const std::string& name) const;
};

/// What `--json` wrote. Throws nlohmann::json::exception where it is something else.
[[nodiscard]] ComparisonFigures read_comparison(const nlohmann::json& figures);

}  // namespace weir::gpu_check
