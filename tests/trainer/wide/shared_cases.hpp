#pragma once

// Training jobs for several ranks, known to the ranks and to the test that starts them.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/wide/wide_settings.hpp"

namespace weir::testing {

struct SharedCase {
  std::string name;
  WideSettings settings;
};

/// 61 → 13 → 9 → 31 and batches of 7 rows: no rank's share is like all others'.
[[nodiscard]] inline WideSettings shared_settings(const std::string& device, Parallel parallel) {
  WideSettings settings = WideSettings::from_environment([](const char*) { return nullptr; },
                                                         Setting<std::string>{device});
  settings.inputs = 61;
  settings.hidden = std::vector<std::size_t>{13, 9};
  settings.outputs = 31;
  settings.nnz = 7;
  settings.train.batch_size = 7;
  settings.train.batches = 10;
  settings.test_batches = 5;
  settings.train.pool.budget = BudgetRequest{.bytes = mib(64)};
  settings.parallel = std::optional<Parallel>(parallel);
  settings.bucket = Bytes{400};  // several
  return settings;
}

/// All settled.
[[nodiscard]] inline std::vector<SharedCase> shared_cases(const std::string& device) {
  std::vector<SharedCase> cases;
  for (const Parallel parallel : {Parallel::kData, Parallel::kModel}) {
    const auto add = [&](const std::string& name, const auto& change) {
      WideSettings settings = shared_settings(device, parallel);
      change(settings);
      settings.settle();
      cases.push_back({std::string(to_string(parallel)) + "-" + name, std::move(settings)});
    };
    add("softmax", [](WideSettings&) {});
    add("logistic", [](WideSettings& s) {
      s.loss = SparseLoss::kLogistic;
      s.optimizer = Optimizer::kAdamax;
      s.lazy_rows = true;
    });
    add("one-hidden", [](WideSettings& s) {
      s.hidden = std::vector<std::size_t>{12};
      s.optimizer = Optimizer::kSgd;
    });
    // A slope is up to 1 by the rows, times 2^16: some steps overflow, on some ranks.
    add("fp16", [](WideSettings& s) {
      s.loss = SparseLoss::kLogistic;
      s.precision = Precision::kFp16;
      s.train.batch_size = 4;
      s.train.batches = 14;
    });
  }
  return cases;
}

}  // namespace weir::testing
