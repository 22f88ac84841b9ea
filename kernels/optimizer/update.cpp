#include "kernels/optimizer/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/rules.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/parts/vectors.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/weighted_rows.hpp"

namespace weir {
namespace {

/// Weights that are done together, few enough to stay in the first cache: the copy is made of them
/// while they are there, and a piece of a row's gradient is held beside them.
constexpr std::size_t kPiece = 1024;

/// The gradient of weights that nothing touched.
constexpr std::array<float, kPiece> kZeros{};

/// Changes weights begin ... begin + g.size() - 1; at most kPiece.
template <typename Rule>
void update_piece(const Rule rule, const Weights& weights, std::size_t begin,
                  std::span<const float> g) {
  float* const w = weights.w.data() + begin;
  float* const first = Rule::kMoments > 0 ? weights.first.data() + begin : nullptr;
  float* const second = Rule::kMoments > 1 ? weights.second.data() + begin : nullptr;
  for (std::size_t i = 0; i < g.size(); ++i) {
    Element e;
    e.w = w[i];
    if constexpr (Rule::kMoments > 0) e.first = first[i];
    if constexpr (Rule::kMoments > 1) e.second = second[i];
    rule.step(e, g[i]);
    w[i] = e.w;
    if constexpr (Rule::kMoments > 0) first[i] = e.first;
    if constexpr (Rule::kMoments > 1) second[i] = e.second;
  }
  if (weights.copy.words.empty()) return;
  to_half(weights.w.subspan(begin, g.size()), weights.copy.words.subspan(begin, g.size()),
          weights.copy.kind);
}

/// Weights begin ... end - 1 by the gradient that `gradient(at, piece)` returns for a piece from
/// `at` on.
template <typename Rule, typename Gradient>
void update_range(const Rule& rule, const Weights& weights, std::size_t begin, std::size_t end,
                  const Gradient& gradient) {
  for (std::size_t at = begin; at < end; at += kPiece) {
    update_piece(rule, weights, at, gradient(at, std::min(kPiece, end - at)));
  }
}

/// A layer's weights and what its gradient is made of.
template <typename Rule>
class Layer {
 public:
  Layer(const Rule& rule, const Weights& weights, std::size_t n, const CsrColumns& x,
        std::span<const float> dy)
      : rule_(rule), weights_(weights), n_(n), x_(x), dy_(dy) {}

  /// The rows that the batch touches.
  void touched() {
    for (std::size_t t = 0; t < x_.touched.size(); ++t) {
      update_range(rule_, weights_, begin_of(t), begin_of(t) + n_,
                   [&](std::size_t at, std::size_t count) { return gradient(at, count, t); });
    }
  }
  /// All rows. Pieces go on over the ends of rows, which may be far shorter.
  void all() {
    std::size_t t = 0;
    update_range(rule_, weights_, 0, weights_.w.size(), [&](std::size_t at, std::size_t count) {
      while (t < x_.touched.size() && begin_of(t) + n_ <= at) ++t;
      return gradient(at, count, t);
    });
  }

 private:
  /// Returns the first weight of the t-th touched row.
  [[nodiscard]] std::size_t begin_of(std::size_t t) const { return x_.touched[t] * n_; }
  /// Returns the gradient of `count` weights from `at` on. Touched row t is the first that does not
  /// end before them.
  std::span<const float> gradient(std::size_t at, std::size_t count, std::size_t t) {
    const std::size_t end = at + count;
    if (t == x_.touched.size() || begin_of(t) >= end) return std::span(kZeros).first(count);
    const std::span<float> piece = std::span(piece_).first(count);
    std::ranges::fill(piece, 0.0F);
    for (; t < x_.touched.size() && begin_of(t) < end; ++t) {
      const std::size_t first = std::max(at, begin_of(t));
      const std::size_t last = std::min(end, begin_of(t) + n_);
      add_weighted_rows(entries_of(x_, t), dy_.data() + (first - begin_of(t)), n_,
                        piece.subspan(first - at, last - first));
    }
    return piece;
  }

  Rule rule_;
  Weights weights_;
  std::size_t n_;
  CsrColumns x_;
  std::span<const float> dy_;
  std::array<float, kPiece> piece_{};
};

}  // namespace

std::size_t moments_of(Optimizer optimizer) noexcept {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kMomentum:
      return 1;
    case Optimizer::kAdam:
    case Optimizer::kAdamax:
      return 2;
  }
  return 0;
}

void require_update(const char* function, const OptimizerOptions& options, const Weights& weights) {
  require_betas(function, options.beta1, options.beta2);
  const auto require = [&](bool allowed, const char* what, double value) {
    if (allowed) return;
    throw UsageError(std::string(function) + ": " + what + ", found " + std::to_string(value));
  };
  const auto finite = [](double value) { return value >= 0 && std::isfinite(value); };
  require(finite(options.lr), "lr must be finite and at least 0", options.lr);
  require(finite(options.momentum), "momentum must be finite and at least 0", options.momentum);
  require(finite(options.eps) && static_cast<float>(options.eps) > 0,
          "eps must be finite and, as float, above 0", options.eps);
  const std::size_t moments = moments_of(options.optimizer);
  const std::size_t count = weights.w.size();
  require_elements({function, "first moment"}, weights.first.size(), moments > 0 ? count : 0);
  require_elements({function, "second moment"}, weights.second.size(), moments > 1 ? count : 0);
  if (!weights.copy.words.empty()) {
    require_elements({function, "copy"}, weights.copy.words.size(), count);
  }
}

void require_betas(const char* function, double beta1, double beta2) {
  const auto allowed = [](double beta) { return beta >= 0 && beta < 1; };
  if (allowed(beta1) && allowed(beta2)) return;
  throw UsageError(std::string(function) + ": the betas are " + std::to_string(beta1) + " and " +
                   std::to_string(beta2) + ", expected at least 0 and below 1");
}

void require_scaling(const char* function, const LossScaling& scaling) {
  if (scaling.least > 0 && scaling.least <= scaling.most && scaling.grow_after > 0) return;
  throw UsageError(std::string(function) + ": the loss scale is from " +
                   std::to_string(scaling.least) + " to " + std::to_string(scaling.most) +
                   ", doubled after " + std::to_string(scaling.grow_after) +
                   " steps, expected 0 < least <= most and at least one step");
}

void begin_step(std::span<float> state, double beta1, double beta2) {
  require_betas("begin_step", beta1, beta2);
  store_step_state(begun(load_step_state(state), beta1, beta2), state);
}

void end_step(std::span<float> state, const LossScaling& scaling) {
  require_scaling("end_step", scaling);
  store_step_state(ended(load_step_state(state), scaling), state);
}

void update(const OptimizerOptions& options, const Weights& weights, std::span<const float> g,
            std::span<const float> state) {
  require_update("update", options, weights);
  require_elements({"update", "g"}, g.size(), weights.w.size());
  const StepState step = load_step_state(state);
  if (step.overflow != 0) return;
  with_rule(options.optimizer, [&]<typename Rule>() {
    const Rule rule = Rule::of(options, step);
    with_vectors([&] {
      update_range(rule, weights, 0, g.size(),
                   [g](std::size_t at, std::size_t count) { return g.subspan(at, count); });
    });
  });
}

void require_rows(const char* function, const Weights& weights, DenseShape shape,
                  const CsrColumns& x, std::span<const float> dy) {
  require_matrix({function, "w"}, weights.w.size(), shape.k, shape.n);
  require_matrix({function, "dy"}, dy.size(), shape.m, shape.n);
  require_elements({function, "values"}, x.values.size(), x.rows.size());
  require_elements({function, "starts"}, x.starts.size(), x.touched.size() + 1);
}

void update_rows(const OptimizerOptions& options, const Weights& weights, DenseShape shape,
                 const CsrColumns& x, std::span<const float> dy, std::span<const float> state,
                 UpdatedRows rows) {
  require_update("update_rows", options, weights);
  require_rows("update_rows", weights, shape, x, dy);
  const StepState step = load_step_state(state);
  if (step.overflow != 0) return;
  with_rule(options.optimizer, [&]<typename Rule>() {
    Layer layer(Rule::of(options, step), weights, shape.n, x, dy);
    const bool all = rows == UpdatedRows::kAll && Rule::kMoments > 0;
    with_vectors([&layer, all] { all ? layer.all() : layer.touched(); });
  });
}

void sgd(std::span<float> w, std::span<const float> g, float lr) {
  require_elements({"sgd", "g"}, g.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i];
}

void sgd_momentum(std::span<float> w, std::span<const float> g, std::span<float> v, float lr,
                  float momentum) {
  require_elements({"sgd_momentum", "g"}, g.size(), w.size());
  require_elements({"sgd_momentum", "v"}, v.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    v[i] = momentum * v[i] + g[i];
    w[i] -= lr * v[i];
  }
}

}  // namespace weir
