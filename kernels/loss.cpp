#include "kernels/loss.hpp"

#include <cmath>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/same_bits.hpp"
#include "kernels/sums/reduce.hpp"

namespace weir {
namespace {

using Row = std::span<const float>;

void require_labelled(const char* function, LogitShape shape, std::span<const float> z,
                      std::span<const float> labels) {
  require_logits(function, shape, z, labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float label = labels[i];
    // Not `label < 0 || ...`, because NaN must fail too. Beyond 2^64 the cast would be undefined.
    const bool in_range = label >= 0 && label < static_cast<float>(shape.classes);
    if (in_range && std::trunc(label) == label) continue;
    throw UsageError(std::string(function) + ": labels[" + std::to_string(i) + "] is " +
                     std::to_string(label) + ", expected a whole number below " +
                     std::to_string(shape.classes));
  }
}

/// Skips NaN: it reappears in the terms.
float largest_of(Row z) {
  float largest = z[0];
  for (const float value : z) largest = value > largest ? value : largest;
  return largest;
}

float row_loss(Row z, float label) {
  const float largest = largest_of(z);
  const float total = sum_terms(0, z.size(), [z, largest](std::size_t j) noexcept {
    return exp_of_negative(z[j] - largest);
  });
  if (std::isnan(total)) return total;
  // The largest logit's own term is 1, so the total is a normal number.
  return log_of_unit(total) + (largest - z[static_cast<std::size_t>(label)]);
}

bool is_correct(Row z, float label) {
  std::size_t largest = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    if (std::isnan(z[j])) return false;
    if (z[j] > z[largest]) largest = j;
  }
  return largest == static_cast<std::size_t>(label);
}

}  // namespace

float require_targets(const char* function, std::span<const float> p, std::span<const float> t) {
  require_that(function, !p.empty(), "the loss of no elements");
  require_elements({function, "t"}, t.size(), p.size());
  return static_cast<float>(p.size());
}

void require_logits(const char* function, LogitShape shape, std::span<const float> z,
                    std::span<const float> labels) {
  require_that(function, shape.rows > 0 && shape.classes > 0,
               "needs at least one row and one class");
  require_matrix({function, "z"}, z.size(), shape.rows, shape.classes);
  require_elements({function, "labels"}, labels.size(), shape.rows);
}

void l2_loss(std::span<const float> p, std::span<const float> t, std::span<float> loss) {
  const float m = require_targets("l2_loss", p, t);
  require_elements({"l2_loss", "loss"}, loss.size(), 1);
  loss[0] = 0.5F * (squared_distance(p, t) / m);
}

void l2_loss_gradient(std::span<const float> p, std::span<const float> t, std::span<float> dp) {
  const float m = require_targets("l2_loss_gradient", p, t);
  require_elements({"l2_loss_gradient", "dp"}, dp.size(), p.size());
  for (std::size_t i = 0; i < dp.size(); ++i) dp[i] = (p[i] - t[i]) / m;
}

void softmax_cross_entropy(LogitShape shape, std::span<const float> z,
                           std::span<const float> labels, std::span<float> loss) {
  require_labelled("softmax_cross_entropy", shape, z, labels);
  require_elements({"softmax_cross_entropy", "loss"}, loss.size(), 1);
  const auto term = [=](std::size_t i) {
    return row_loss(z.subspan(i * shape.classes, shape.classes), labels[i]);
  };
  loss[0] = sum_terms(0, shape.rows, term) / static_cast<float>(shape.rows);
}

void softmax_cross_entropy_gradient(LogitShape shape, std::span<const float> z,
                                    std::span<const float> labels, std::span<float> dz) {
  require_labelled("softmax_cross_entropy_gradient", shape, z, labels);
  require_elements({"softmax_cross_entropy_gradient", "dz"}, dz.size(), z.size());
  const auto rows = static_cast<float>(shape.rows);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    const Row logits = z.subspan(i * shape.classes, shape.classes);
    const std::span<float> out = dz.subspan(i * shape.classes, shape.classes);
    const float largest = largest_of(logits);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = exp_of_negative(logits[j] - largest);
    const float total = sum(out);
    const auto label = static_cast<std::size_t>(labels[i]);
    for (std::size_t j = 0; j < out.size(); ++j) {
      out[j] = (out[j] / total - (j == label ? 1.0F : 0.0F)) / rows;
    }
  }
}

void count_correct(LogitShape shape, std::span<const float> z, std::span<const float> labels,
                   std::span<float> correct) {
  require_labelled("count_correct", shape, z, labels);
  require_elements({"count_correct", "correct"}, correct.size(), 1);
  std::size_t count = 0;
  for (std::size_t i = 0; i < shape.rows; ++i) {
    if (is_correct(z.subspan(i * shape.classes, shape.classes), labels[i])) ++count;
  }
  correct[0] = static_cast<float>(count);
}

}  // namespace weir
