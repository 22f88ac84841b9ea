// The maths of a GPU: our own kernels, and cuBLAS for products.

#include <exception>
#include <optional>
#include <string>

#include "allocator/base/log.hpp"
#include "allocator/base/scope_cuda.hpp"
#include "kernels/blas/blas_cuda.hpp"
#include "kernels/classification_cuda.hpp"
#include "kernels/dense_cuda.hpp"
#include "kernels/elementwise/elementwise_cuda.hpp"
#include "kernels/elementwise/random_cuda.hpp"
#include "kernels/loss_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/sgd_cuda.hpp"
#include "scheduler/device/stream_cuda.hpp"
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
    cuda::fill_normal(cuda_stream(stream), draw.seed, draw.sequence, out);
    if (draw.deviation != 1) cuda::scale(cuda_stream(stream), draw.deviation, out);
  }
  void add(Stream& stream, In x, Out total) override { cuda::add(cuda_stream(stream), x, total); }

  void dense_forward(Stream& stream, DenseShape shape, In x, In w, In b, Out y,
                     Activation activation, Out workspace) override {
    cuda::dense_forward(*blas_, cuda_stream(stream), shape, x, w, b, y, activation, workspace);
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

 private:
  /// Created and destroyed with its device current, as cuBLAS requires.
  const int ordinal_;
  std::optional<cuda::CublasHandle> blas_;
};

}  // namespace

std::unique_ptr<Maths> make_cuda_maths(int ordinal) { return std::make_unique<CudaMaths>(ordinal); }

Bytes cuda_workspace() noexcept { return cuda::kWorkspaceBytes; }

}  // namespace weir
