// The maths of a GPU: our own kernels, and cuBLAS for products.

#include <exception>
#include <optional>
#include <string>

#include "allocator/base/error_cuda.hpp"
#include "allocator/base/log.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "trainer/model/half_words.hpp"
#include "trainer/model/maths.hpp"

namespace weir {
namespace {

class CudaMaths final : public Maths {
 public:
  explicit CudaMaths(int ordinal) : ordinal_(ordinal) {
    const CudaScope scope(ordinal);
    blas_.emplace();
  }
  ~CudaMaths() override {
    try {
      const CudaScope scope(ordinal_);
      blas_.reset();
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("a cuBLAS handle is leaked: ") + error.what());
    }
  }
  CudaMaths(const CudaMaths&) = delete;
  CudaMaths& operator=(const CudaMaths&) = delete;

  [[nodiscard]] Bytes workspace() const noexcept override { return cuda_workspace(); }

  void fill(Stream& stream, float value, Out out) override {
    cuda::fill(cuda_stream(stream), out, value);
  }
  void fill_normal(Stream& stream, NormalDraw draw, Out out) override {
    cuda::fill_normal(cuda_stream(stream), draw.seed, draw.sequence, out, draw.first);
    if (draw.deviation != 1) cuda::scale(cuda_stream(stream), draw.deviation, out);
  }
  void add(Stream& stream, In x, Out total) override { cuda::add(cuda_stream(stream), x, total); }

  void dense_forward(Stream& stream, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out workspace) override {
    cuda::dense_forward(*blas_, cuda_stream(stream), shape, x, w, b, y, activation, workspace);
  }
  void bias_activation(Stream& stream, DenseShape shape, In b, Out y,
                       Activation activation) override {
    cuda::bias_activation(cuda_stream(stream), shape, b, y, activation);
  }
  void dense_weight_gradient(Stream& stream, DenseShape shape, In x, In dy, Out dw,
                             Out workspace) override {
    cuda::dense_weight_gradient(*blas_, cuda_stream(stream), shape, x, dy, dw, workspace);
  }
  void dense_input_gradient(Stream& stream, DenseShape shape, In dy, In w, Out dx,
                            Out workspace) override {
    cuda::dense_input_gradient(*blas_, cuda_stream(stream), shape, dy, w, dx, workspace);
  }
  void dense_bias_gradient(Stream& stream, DenseShape shape, In dy, Out db,
                           Out workspace) override {
    cuda::dense_bias_gradient(cuda_stream(stream), shape, dy, db, workspace);
  }
  void relu_and_bias_gradient(Stream& stream, DenseShape shape, In y, Out dy, Out db,
                              Out workspace) override {
    cuda::relu_and_bias_gradient(cuda_stream(stream), shape, y, dy, db, workspace);
  }

  void l2_loss(Stream& stream, In p, In t, Out loss, Out workspace) override {
    cuda::l2_loss(cuda_stream(stream), p, t, loss, workspace);
  }
  void l2_loss_gradient(Stream& stream, In p, In t, Out dp) override {
    cuda::l2_loss_gradient(cuda_stream(stream), p, t, dp);
  }
  void softmax_cross_entropy(Stream& stream, LogitShape shape, In z, In labels, Out loss,
                             Out workspace) override {
    cuda::softmax_cross_entropy(cuda_stream(stream), shape, z, labels, loss, workspace);
  }
  void softmax_cross_entropy_gradient(Stream& stream, LogitShape shape, In z, In labels,
                                      Out dz) override {
    cuda::softmax_cross_entropy_gradient(cuda_stream(stream), shape, z, labels, dz);
  }
  void count_correct(Stream& stream, LogitShape shape, In z, In labels, Out correct,
                     Out workspace) override {
    cuda::count_correct(cuda_stream(stream), shape, z, labels, correct, workspace);
  }

  void sgd(Stream& stream, Out w, In g, float rate) override {
    cuda::sgd(cuda_stream(stream), w, g, rate);
  }
  void sgd_momentum(Stream& stream, Out w, In g, Out v, float rate, float momentum) override {
    cuda::sgd_momentum(cuda_stream(stream), w, g, v, rate, momentum);
  }

  void csr_forward(Stream& stream, const CsrRows& x, In w, In b, Out y,
                   Activation activation) override {
    cuda::csr_forward(cuda_stream(stream), x, w, b, y, activation);
  }
  void softmax_statistics(Stream& stream, const SparseLabels& labels, In z, Out statistics,
                          Out workspace) override {
    cuda::softmax_statistics(cuda_stream(stream), labels, z, statistics, workspace);
  }
  void softmax_loss(Stream& stream, const SparseLabels& labels, In statistics, Out loss,
                    Out workspace) override {
    cuda::softmax_loss(cuda_stream(stream), labels, statistics, loss, workspace);
  }
  void softmax_gradient(Stream& stream, const SparseLabels& labels, In z, In statistics,
                        Out dz) override {
    cuda::softmax_gradient(cuda_stream(stream), labels, z, statistics, dz);
  }
  void logistic_loss_and_gradient(Stream& stream, const SparseLabels& labels, In z, Out loss,
                                  Out dz, Out workspace) override {
    cuda::logistic_loss_and_gradient(cuda_stream(stream), labels, z, loss, dz, workspace);
  }
  void count_hits(Stream& stream, const SparseLabels& labels, In z, Out hits,
                  Out workspace) override {
    cuda::count_hits(cuda_stream(stream), labels, z, hits, workspace);
  }
  void top_logits(Stream& stream, const SparseLabels& labels, In z, Out tops,
                  Out workspace) override {
    cuda::top_logits(cuda_stream(stream), labels, z, tops, workspace);
  }
  void merge_softmax_statistics(Stream& stream, In parts, Out statistics) override {
    cuda::merge_softmax_statistics(cuda_stream(stream), parts, statistics);
  }
  void merge_hits(Stream& stream, In parts, std::size_t rows, Out hits, Out workspace) override {
    cuda::merge_hits(cuda_stream(stream), parts, rows, hits, workspace);
  }

  void mixed_forward(Stream& stream, Precision precision, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out workspace) override {
    const auto kind = half_kind(precision);
    if (!kind)
      return cuda::dense_forward(*blas_, cuda_stream(stream), precision, shape, x, w, b, y,
                                 activation, workspace);
    cuda::dense_forward(*blas_, cuda_stream(stream), *kind, shape, half_words(x, shape.m * shape.k),
                        half_words(w, shape.k * shape.n), b, y, activation, workspace);
  }
  void mixed_weight_gradient(Stream& stream, Precision precision, DenseShape shape, In x, In dy,
                             Out dw, Out workspace) override {
    const auto kind = half_kind(precision);
    if (!kind)
      return cuda::dense_weight_gradient(*blas_, cuda_stream(stream), precision, shape, x, dy, dw,
                                         workspace);
    cuda::dense_weight_gradient(*blas_, cuda_stream(stream), *kind, shape,
                                half_words(x, shape.m * shape.k), half_words(dy, shape.m * shape.n),
                                dw, workspace);
  }
  void mixed_input_gradient(Stream& stream, Precision precision, DenseShape shape, In dy, In w,
                            Out dx, Out workspace) override {
    const auto kind = half_kind(precision);
    if (!kind)
      return cuda::dense_input_gradient(*blas_, cuda_stream(stream), precision, shape, dy, w, dx,
                                        workspace);
    cuda::dense_input_gradient(*blas_, cuda_stream(stream), *kind, shape,
                               half_words(dy, shape.m * shape.n), half_words(w, shape.k * shape.n),
                               dx, workspace);
  }
  void to_half(Stream& stream, HalfKind kind, In x, Out words) override {
    cuda::to_half(cuda_stream(stream), x, half_words(words, x.size()), kind);
  }
  void scale_to_half(Stream& stream, HalfKind kind, In state, Out x, Out words) override {
    cuda::scale_to_half(cuda_stream(stream), state, x, half_words(words, x.size()), kind);
  }
  void flag_not_finite(Stream& stream, In x, Out state) override {
    cuda::flag_not_finite(cuda_stream(stream), x, state);
  }

  void begin_step(Stream& stream, const OptimizerOptions& options, Out state) override {
    cuda::begin_step(cuda_stream(stream), state, options.beta1, options.beta2);
  }
  void end_step(Stream& stream, const LossScaling& scaling, Out state) override {
    cuda::end_step(cuda_stream(stream), state, scaling);
  }
  void update(Stream& stream, const OptimizerOptions& options, const Weights& weights, In g,
              In state) override {
    cuda::update(cuda_stream(stream), options, weights, g, state);
  }
  void update_rows(Stream& stream, const OptimizerOptions& options, const Weights& weights,
                   DenseShape shape, const CsrColumns& x, In dy, In state,
                   UpdatedRows rows) override {
    cuda::update_rows(cuda_stream(stream), options, weights, shape, x, dy, state, rows);
  }

 private:
  /// Created and destroyed with its device current, as cuBLAS requires.
  const int ordinal_;
  std::optional<cuda::CublasHandle> blas_;
};

}  // namespace

std::unique_ptr<Maths> make_cuda_maths(int ordinal) { return std::make_unique<CudaMaths>(ordinal); }

Bytes cuda_workspace() noexcept { return cuda::kWorkspaceBytes; }

}  // namespace weir
