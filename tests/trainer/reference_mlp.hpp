#pragma once

// A reference for training: the same model, loss and optimizer in double, in plain loops that share
// no code with the kernels or the trainer's model.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/elementwise/elementwise.hpp"

namespace weir::testing {

using Numbers = std::vector<double>;

[[nodiscard]] inline Numbers widened(std::span<const float> values) {
  return {values.begin(), values.end()};
}

class ReferenceMlp {
 public:
  /// Starts from the trainer's initial bits: drawn and scaled in float.
  ReferenceMlp(std::vector<std::size_t> widths, std::uint64_t seed) : widths_(std::move(widths)) {
    for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
      std::vector<float> weights(widths_[l] * widths_[l + 1]);
      fill_normal(seed, l, weights);
      const float deviation = std::sqrt(2.0F / static_cast<float>(widths_[l]));
      for (float& w : weights) w *= deviation;
      parameters.push_back(widened(weights));
      parameters.emplace_back(widths_[l + 1], 0.0);
    }
  }

  /// h_0 = x, h_1, … h_last, each [rows × width].
  [[nodiscard]] std::vector<Numbers> forward(const Numbers& x) const {
    std::vector<Numbers> tape{x};
    const std::size_t rows = x.size() / widths_.front();
    for (std::size_t l = 0; l < layers(); ++l) {
      const std::size_t k = widths_[l];
      const std::size_t n = widths_[l + 1];
      Numbers y(rows * n);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t j = 0; j < n; ++j) {
          double sum = parameters[2 * l + 1][j];
          for (std::size_t i = 0; i < k; ++i) {
            sum += tape.back()[r * k + i] * parameters[2 * l][i * n + j];
          }
          y[r * n + j] = l + 1 < layers() && sum < 0 ? 0 : sum;
        }
      }
      tape.push_back(std::move(y));
    }
    return tape;
  }

  /// Half the mean of the squared differences.
  [[nodiscard]] static double loss(const Numbers& prediction, const Numbers& targets) {
    double sum = 0;
    for (std::size_t i = 0; i < prediction.size(); ++i) {
      sum += (prediction[i] - targets[i]) * (prediction[i] - targets[i]);
    }
    return sum / (2 * static_cast<double>(prediction.size()));
  }

  /// The gradients of that loss, in the order of the parameters.
  [[nodiscard]] std::vector<Numbers> gradients(const std::vector<Numbers>& tape,
                                               const Numbers& targets) const {
    Numbers dy = tape.back();
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dy[i] = (dy[i] - targets[i]) / static_cast<double>(targets.size());
    }
    return backward(tape, std::move(dy));
  }

  /// The mean cross-entropy of the softmax of rows of logits, and its slope at them.
  struct CrossEntropy {
    double loss = 0;
    Numbers slope;
  };
  [[nodiscard]] static CrossEntropy cross_entropy(const Numbers& logits, const Numbers& labels) {
    const std::size_t classes = logits.size() / labels.size();
    const auto rows = static_cast<double>(labels.size());
    CrossEntropy result{.loss = 0, .slope = Numbers(logits.size())};
    for (std::size_t i = 0; i < logits.size(); i += classes) {
      double total = 0;
      for (std::size_t j = 0; j < classes; ++j) total += std::exp(logits[i + j]);
      for (std::size_t j = 0; j < classes; ++j) {
        result.slope[i + j] = std::exp(logits[i + j]) / total / rows;
      }
      const std::size_t label = i + static_cast<std::size_t>(labels[i / classes]);
      result.slope[label] -= 1 / rows;
      result.loss += (std::log(total) - logits[label]) / rows;
    }
    return result;
  }

  /// The gradients of a loss with the slope `dy` at the prediction.
  [[nodiscard]] std::vector<Numbers> backward(const std::vector<Numbers>& tape, Numbers dy) const {
    std::vector<Numbers> all(parameters.size());
    for (std::size_t l = layers(); l-- > 0;) {
      const Numbers& x = tape[l];
      const std::size_t k = widths_[l];
      const std::size_t n = widths_[l + 1];
      const std::size_t rows = x.size() / k;
      Numbers dw(k * n);
      Numbers db(n);
      Numbers dx(rows * k);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t j = 0; j < n; ++j) {
          const double d = dy[r * n + j];
          db[j] += d;
          for (std::size_t i = 0; i < k; ++i) {
            dw[i * n + j] += x[r * k + i] * d;
            // A relu passed values that are now above zero; the input itself has no relu.
            if (x[r * k + i] > 0) dx[r * k + i] += d * parameters[2 * l][i * n + j];
          }
        }
      }
      all[2 * l] = std::move(dw);
      all[2 * l + 1] = std::move(db);
      dy = std::move(dx);
    }
    return all;
  }

  /// v = momentum v + g, w = w − lr v.
  void step(const std::vector<Numbers>& gradients, double learning_rate, double momentum) {
    velocities_.resize(parameters.size());
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      velocities_[p].resize(parameters[p].size());
      for (std::size_t i = 0; i < parameters[p].size(); ++i) {
        velocities_[p][i] = momentum * velocities_[p][i] + gradients[p][i];
        parameters[p][i] -= learning_rate * velocities_[p][i];
      }
    }
  }

  std::vector<Numbers> parameters;  ///< W_0, b_0, W_1, …

 private:
  [[nodiscard]] std::size_t layers() const { return widths_.size() - 1; }

  std::vector<std::size_t> widths_;
  std::vector<Numbers> velocities_;
};

/// The largest difference between corresponding elements; infinite if shapes differ.
[[nodiscard]] inline double largest_difference(const std::vector<std::vector<float>>& ours,
                                               const std::vector<Numbers>& reference) {
  if (ours.size() != reference.size()) return INFINITY;
  double largest = 0;
  for (std::size_t p = 0; p < ours.size(); ++p) {
    if (ours[p].size() != reference[p].size()) return INFINITY;
    for (std::size_t i = 0; i < ours[p].size(); ++i) {
      const double difference = std::abs(static_cast<double>(ours[p][i]) - reference[p][i]);
      if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
    }
  }
  return largest;
}

}  // namespace weir::testing
