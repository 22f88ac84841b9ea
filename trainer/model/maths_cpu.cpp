#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "trainer/model/half_words.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

class CpuMaths final : public Maths {
 public:
  [[nodiscard]] Bytes workspace() const noexcept override { return {}; }

  void fill(Stream& /*stream*/, float value, Out out) override { weir::fill(out, value); }
  void fill_normal(Stream& /*stream*/, NormalDraw draw, Out out) override {
    weir::fill_normal(draw.seed, draw.sequence, out, draw.first);
    if (draw.deviation != 1) weir::scale(draw.deviation, out);
  }
  void add(Stream& /*stream*/, In x, Out total) override { weir::add(x, total); }

  void dense_forward(Stream& /*stream*/, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out /*workspace*/) override {
    weir::dense_forward(shape, x, w, b, y, activation);
  }
  void bias_activation(Stream& /*stream*/, DenseShape shape, In b, Out y,
                       Activation activation) override {
    weir::bias_activation(shape, b, y, activation);
  }
  void dense_weight_gradient(Stream& /*stream*/, DenseShape shape, In x, In dy, Out dw,
                             Out /*workspace*/) override {
    weir::dense_weight_gradient(shape, x, dy, dw);
  }
  void dense_input_gradient(Stream& /*stream*/, DenseShape shape, In dy, In w, Out dx,
                            Out /*workspace*/) override {
    weir::dense_input_gradient(shape, dy, w, dx);
  }
  void dense_bias_gradient(Stream& /*stream*/, DenseShape shape, In dy, Out db,
                           Out /*workspace*/) override {
    weir::dense_bias_gradient(shape, dy, db);
  }
  void relu_and_bias_gradient(Stream& /*stream*/, DenseShape shape, In y, Out dy, Out db,
                              Out /*workspace*/) override {
    weir::relu_and_bias_gradient(shape, y, dy, db);
  }

  void l2_loss(Stream& /*stream*/, In p, In t, Out loss, Out /*workspace*/) override {
    weir::l2_loss(p, t, loss);
  }
  void l2_loss_gradient(Stream& /*stream*/, In p, In t, Out dp) override {
    weir::l2_loss_gradient(p, t, dp);
  }
  void softmax_cross_entropy(Stream& /*stream*/, LogitShape shape, In z, In labels, Out loss,
                             Out /*workspace*/) override {
    weir::softmax_cross_entropy(shape, z, labels, loss);
  }
  void softmax_cross_entropy_gradient(Stream& /*stream*/, LogitShape shape, In z, In labels,
                                      Out dz) override {
    weir::softmax_cross_entropy_gradient(shape, z, labels, dz);
  }
  void count_correct(Stream& /*stream*/, LogitShape shape, In z, In labels, Out correct,
                     Out /*workspace*/) override {
    weir::count_correct(shape, z, labels, correct);
  }

  void sgd(Stream& /*stream*/, Out w, In g, float rate) override { weir::sgd(w, g, rate); }
  void sgd_momentum(Stream& /*stream*/, Out w, In g, Out v, float rate, float momentum) override {
    weir::sgd_momentum(w, g, v, rate, momentum);
  }

  void csr_forward(Stream& /*stream*/, const CsrRows& x, In w, In b, Out y,
                   Activation activation) override {
    weir::csr_forward(x, w, b, y, activation);
  }
  void softmax_statistics(Stream& /*stream*/, const SparseLabels& labels, In z, Out statistics,
                          Out /*workspace*/) override {
    weir::softmax_statistics(labels, z, statistics);
  }
  void softmax_loss(Stream& /*stream*/, const SparseLabels& labels, In statistics, Out loss,
                    Out /*workspace*/) override {
    weir::softmax_loss(labels, statistics, loss);
  }
  void softmax_gradient(Stream& /*stream*/, const SparseLabels& labels, In z, In statistics,
                        Out dz) override {
    weir::softmax_gradient(labels, z, statistics, dz);
  }
  void logistic_loss_and_gradient(Stream& /*stream*/, const SparseLabels& labels, In z, Out loss,
                                  Out dz, Out /*workspace*/) override {
    weir::logistic_loss_and_gradient(labels, z, loss, dz);
  }
  void count_hits(Stream& /*stream*/, const SparseLabels& labels, In z, Out hits,
                  Out /*workspace*/) override {
    weir::count_hits(labels, z, hits);
  }
  void top_logits(Stream& /*stream*/, const SparseLabels& labels, In z, Out tops,
                  Out /*workspace*/) override {
    weir::top_logits(labels, z, tops);
  }
  void merge_softmax_statistics(Stream& /*stream*/, In parts, Out statistics) override {
    weir::merge_softmax_statistics(parts, statistics);
  }
  void merge_hits(Stream& /*stream*/, In parts, std::size_t rows, Out hits,
                  Out /*workspace*/) override {
    weir::merge_hits(parts, rows, hits);
  }

  void mixed_forward(Stream& /*stream*/, Precision precision, DenseShape shape, In x, In w, In b,
                     Out y, Activation activation, Out /*workspace*/) override {
    const auto kind = half_kind(precision);
    if (!kind) return weir::dense_forward(precision, shape, x, w, b, y, activation);
    weir::dense_forward(*kind, shape, half_words(x, shape.m * shape.k),
                        half_words(w, shape.k * shape.n), b, y, activation);
  }
  void mixed_weight_gradient(Stream& /*stream*/, Precision precision, DenseShape shape, In x, In dy,
                             Out dw, Out /*workspace*/) override {
    const auto kind = half_kind(precision);
    if (!kind) return weir::dense_weight_gradient(precision, shape, x, dy, dw);
    weir::dense_weight_gradient(*kind, shape, half_words(x, shape.m * shape.k),
                                half_words(dy, shape.m * shape.n), dw);
  }
  void mixed_input_gradient(Stream& /*stream*/, Precision precision, DenseShape shape, In dy, In w,
                            Out dx, Out /*workspace*/) override {
    const auto kind = half_kind(precision);
    if (!kind) return weir::dense_input_gradient(precision, shape, dy, w, dx);
    weir::dense_input_gradient(*kind, shape, half_words(dy, shape.m * shape.n),
                               half_words(w, shape.k * shape.n), dx);
  }
  void to_half(Stream& /*stream*/, HalfKind kind, In x, Out words) override {
    weir::to_half(x, half_words(words, x.size()), kind);
  }
  void scale_to_half(Stream& /*stream*/, HalfKind kind, In state, Out x, Out words) override {
    weir::scale_to_half(state, x, half_words(words, x.size()), kind);
  }
  void flag_not_finite(Stream& /*stream*/, In x, Out state) override {
    weir::flag_not_finite(x, state);
  }

  void begin_step(Stream& /*stream*/, const OptimizerOptions& options, Out state) override {
    weir::begin_step(state, options.beta1, options.beta2);
  }
  void end_step(Stream& /*stream*/, const LossScaling& scaling, Out state) override {
    weir::end_step(state, scaling);
  }
  void update(Stream& /*stream*/, const OptimizerOptions& options, const Weights& weights, In g,
              In state) override {
    weir::update(options, weights, g, state);
  }
  void update_rows(Stream& /*stream*/, const OptimizerOptions& options, const Weights& weights,
                   DenseShape shape, const CsrColumns& x, In dy, In state,
                   UpdatedRows rows) override {
    weir::update_rows(options, weights, shape, x, dy, state, rows);
  }
};

}  // namespace

std::unique_ptr<Maths> make_cpu_maths() { return std::make_unique<CpuMaths>(); }

}  // namespace weir
