#include "kernels/optimizer/update.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/optimizer/rules.hpp"
#include "kernels/parts/check.hpp"
#include "kernels/precision/convert.hpp"
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

/// The rows of a layer that a batch touches, and the others.
template <typename Rule>
class Layer {
 public:
  Layer(const Rule& rule, const Weights& weights, std::size_t n, const CsrColumns& x,
        std::span<const float> dy)
      : rule_(rule), weights_(weights), n_(n), x_(x), dy_(dy) {}

  /// The t-th touched row.
  void touched(std::size_t t) {
    const std::size_t begin = x_.touched[t] * n_;
    update_range(rule_, weights_, begin, begin + n_, [&](std::size_t at, std::size_t count) {
      const std::span<float> piece = std::span(piece_).first(count);
      std::ranges::fill(piece, 0.0F);
      add_weighted_rows(entries_of(x_, t), dy_.data() + (at - begin), n_, piece);
      return piece;
    });
  }
  /// Rows begin ... end - 1, none of them touched.
  void untouched(std::size_t begin, std::size_t end) {
    update_range(rule_, weights_, begin * n_, end * n_,
                 [](std::size_t, std::size_t count) { return std::span(kZeros).first(count); });
  }

 private:
  Rule rule_;
  Weights weights_;
  std::size_t n_;
  CsrColumns x_;
  std::span<const float> dy_;
  std::array<float, kPiece> piece_{};
};

}  // namespace

void update(const OptimizerOptions& options, const Weights& weights, std::span<const float> g,
            std::span<const float> state) {
  require_update("update", options, weights);
  require_elements({"update", "g"}, g.size(), weights.w.size());
  const StepState step = load_step_state(state);
  if (step.overflow != 0) return;
  with_rule(options.optimizer, [&]<typename Rule>() {
    update_range(Rule::of(options, step), weights, 0, g.size(),
                 [g](std::size_t at, std::size_t count) { return g.subspan(at, count); });
  });
}

void require_rows(std::string_view function, const Weights& weights, DenseShape shape,
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
    std::size_t next = 0;
    for (std::size_t t = 0; t < x.touched.size(); ++t) {
      if (all) layer.untouched(next, x.touched[t]);
      layer.touched(t);
      next = x.touched[t] + std::size_t{1};
    }
    if (all) layer.untouched(next, shape.k);
  });
}

}  // namespace weir
