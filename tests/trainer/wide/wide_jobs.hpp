#pragma once

// Wide training jobs of sizes for tests, and a reference that is dense and double.

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/jobs.hpp"
#include "trainer/reference_mlp.hpp"
#include "trainer/wide/wide_train.hpp"

namespace weir::testing {

using LayerWeights = std::vector<std::vector<float>>;

/// 60 → 12 → 8 → 30, batches of 6 rows with some 6 entries.
[[nodiscard]] inline WideSettings tiny_wide() {
  WideSettings settings = WideSettings::from_environment([](const char*) { return nullptr; },
                                                         Setting<std::string>{"cpu"});
  settings.inputs = 60;
  settings.hidden = std::vector<std::size_t>{12, 8};
  settings.outputs = 30;
  settings.nnz = 6;
  settings.train.batch_size = 6;
  settings.train.batches = 50;
  settings.test_batches = 2;
  settings.train.pool.budget = BudgetRequest{.bytes = mib(64)};
  settings.settle();
  return settings;
}

/// Returns a run that finished. Throws its report otherwise.
[[nodiscard]] inline WideResult finished(WideResult run) {
  if (run.run.outcome != Outcome::kFinished) throw std::runtime_error(run.run.report);
  return run;
}

[[nodiscard]] inline WideResult train_to_weights(const WideSettings& settings) {
  return train_wide(settings, {.read_weights = true});
}

[[nodiscard]] inline WideResult train_with(WideSettings settings, Policy policy, Bytes budget) {
  settings.train.policy.policy = policy;
  settings.train.pool.budget = BudgetRequest{.bytes = budget};
  return train_to_weights(settings);
}

/// Batches of some 600 KiB, which wait in memory for a device that is slower than the readers.
[[nodiscard]] inline WideSettings large_batches() {
  WideSettings settings = tiny_wide();
  settings.inputs = 2000;
  settings.hidden = std::vector<std::size_t>{512, 32};
  settings.outputs = 50;
  settings.nnz = 300;
  settings.train.batch_size = 128;
  settings.train.batches = 24;
  settings.test_batches = 1;
  return settings;
}

/// What a run needs: between batches, and in addition while one batch is in flight.
struct WideMemory {
  Bytes live;
  Bytes batch;
};
[[nodiscard]] inline WideMemory memory_of(WideSettings settings) {
  settings.train.batches = 2;
  const WideResult alone = train_with(settings, Policy::kBarrier, gib(1));
  return {alone.memory.allocated, alone.run.pool.held.peak - alone.memory.allocated};
}

/// The same network in double on dense inputs.
class ReferenceWide {
 public:
  ReferenceWide(const WideSettings& settings, const LayerWeights& initial)
      : mlp_(settings.widths(), 1), columns_(settings.widths().front()) {
    for (std::size_t i = 0; i < initial.size(); ++i) mlp_.parameters[i] = widened(initial[i]);
  }
  [[nodiscard]] const std::vector<Numbers>& parameters() const { return mlp_.parameters; }
  [[nodiscard]] std::vector<Numbers>& parameters() { return mlp_.parameters; }

  [[nodiscard]] double loss(const SparseRows& rows, SparseLoss kind) const {
    return slope_of(mlp_.forward(dense(rows)).back(), rows, kind).loss;
  }
  [[nodiscard]] std::vector<Numbers> gradients(const SparseRows& rows, SparseLoss kind) const {
    const std::vector<Numbers> tape = mlp_.forward(dense(rows));
    return mlp_.backward(tape, slope_of(tape.back(), rows, kind).slope);
  }
  void sgd(const std::vector<Numbers>& gradients, double rate) { mlp_.step(gradients, rate, 0); }
  /// Algorithm 1 of https://arxiv.org/abs/1412.6980.
  void adam(const std::vector<Numbers>& gradients, const OptimizerOptions& o) {
    first_.resize(gradients.size());
    second_.resize(gradients.size());
    ++steps_;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      first_[p].resize(gradients[p].size());
      second_[p].resize(gradients[p].size());
      for (std::size_t i = 0; i < gradients[p].size(); ++i) {
        const double g = gradients[p][i];
        first_[p][i] = o.beta1 * first_[p][i] + (1 - o.beta1) * g;
        second_[p][i] = o.beta2 * second_[p][i] + (1 - o.beta2) * g * g;
        const double m = first_[p][i] / (1 - std::pow(o.beta1, steps_));
        const double v = second_[p][i] / (1 - std::pow(o.beta2, steps_));
        mlp_.parameters[p][i] -= o.lr * m / (std::sqrt(v) + o.eps);
      }
    }
  }

 private:
  [[nodiscard]] Numbers dense(const SparseRows& rows) const {
    Numbers x(rows.rows() * columns_);
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      for (std::size_t e = rows.starts[r]; e < rows.starts[r + 1]; ++e) {
        x[r * columns_ + rows.indices[e]] = rows.values[e];
      }
    }
    return x;
  }
  [[nodiscard]] static ReferenceMlp::CrossEntropy slope_of(const Numbers& z, const SparseRows& rows,
                                                           SparseLoss kind) {
    const std::size_t classes = rows.classes;
    const auto count = static_cast<double>(rows.rows());
    ReferenceMlp::CrossEntropy result{.loss = 0, .slope = Numbers(z.size())};
    for (std::size_t r = 0; r < rows.rows(); ++r) {
      Numbers target(classes);
      const std::size_t labels = rows.label_starts[r + 1] - rows.label_starts[r];
      for (std::size_t l = rows.label_starts[r]; l < rows.label_starts[r + 1]; ++l) {
        target[rows.labels[l]] =
            kind == SparseLoss::kSoftmax ? 1.0 / static_cast<double>(labels) : 1;
      }
      double total = 0;
      for (std::size_t j = 0; j < classes; ++j) total += std::exp(z[r * classes + j]);
      for (std::size_t j = 0; j < classes; ++j) {
        const double logit = z[r * classes + j];
        const bool softmax = kind == SparseLoss::kSoftmax;
        const double share = softmax ? std::exp(logit) / total : 1 / (1 + std::exp(-logit));
        result.slope[r * classes + j] = (share - target[j]) / count;
        result.loss += softmax ? target[j] * (std::log(total) - logit) / count
                               : (std::log1p(std::exp(logit)) - target[j] * logit) / count;
      }
    }
    return result;
  }

  ReferenceMlp mlp_;
  std::size_t columns_;
  std::vector<Numbers> first_;
  std::vector<Numbers> second_;
  double steps_ = 0;
};

/// The rows of batch `index`.
[[nodiscard]] inline SparseRows batch_rows(const WideSettings& settings, std::uint64_t index) {
  SparseRows rows;
  settings.training_source()(index, rows);
  return rows;
}

/// The weights that a run of these settings begins with.
[[nodiscard]] inline LayerWeights initial_weights(const WideSettings& settings) {
  LayerWeights all;
  const std::vector<std::size_t> widths = settings.widths();
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    std::vector<float> weights(widths[l] * widths[l + 1]);
    fill_normal(settings.train.seed.value, l, weights);
    const float deviation = l == 0 ? input_deviation(settings.training_source())
                                   : std::sqrt(2.0F / static_cast<float>(widths[l]));
    for (float& w : weights) w *= deviation;
    all.push_back(std::move(weights));
    all.emplace_back(widths[l + 1], 0.0F);
  }
  return all;
}

}  // namespace weir::testing
