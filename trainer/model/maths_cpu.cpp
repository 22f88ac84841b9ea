#include "kernels/classification.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/sgd.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

class CpuMaths final : public Maths {
 public:
  [[nodiscard]] Bytes workspace() const noexcept override { return {}; }

  void fill(Stream& /*stream*/, float value, Out out) override { weir::fill(out, value); }
  void fill_normal(Stream& /*stream*/, NormalDraw draw, Out out) override {
    weir::fill_normal(draw.seed, draw.sequence, out);
    if (draw.deviation != 1) weir::scale(draw.deviation, out);
  }
  void add(Stream& /*stream*/, In x, Out total) override { weir::add(x, total); }

  void dense_forward(Stream& /*stream*/, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out /*workspace*/) override {
    weir::dense_forward(shape, x, w, b, y, activation);
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
};

}  // namespace

std::unique_ptr<Maths> make_cpu_maths() { return std::make_unique<CpuMaths>(); }

}  // namespace weir
