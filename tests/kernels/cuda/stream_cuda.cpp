// Every operation waits for its stream, and for no other.

#include <algorithm>
#include <functional>

#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/random.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/sums/reduce.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"
#include "tests/kernels/cuda/device_sparse_cuda.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::check_cuda;
using weir::DenseShape;
using weir::LogitShape;
using weir::testing::DeviceArray;
using weir::testing::expect_same_bits;
using weir::testing::Gate;

constexpr std::size_t kSide = 32;
constexpr DenseShape kDense{.m = kSide, .k = kSide, .n = kSide};
constexpr LogitShape kLogits{.rows = kSide, .classes = kSide};

/// Holds a stream until it is destroyed.
class Hold {
 public:
  explicit Hold(cudaStream_t stream) : stream_(stream) {
    weir::testing::expect_named_while_held();
    const auto pass = [](void* gate) { static_cast<Gate*>(gate)->pass(); };
    check_cuda(cudaLaunchHostFunc(stream, pass, &gate_), "cudaLaunchHostFunc");
  }
  ~Hold() {
    gate_.open();
    (void)weir::take_cuda_error(cudaStreamSynchronize(stream_));
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  cudaStream_t stream_;
  Gate gate_;
};

struct Operation {
  std::string name;
  std::function<void()> enqueue;
};

class StreamsWhileHeld : public weir::testing::GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (HasFatalFailure()) return;
    check_cuda(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  void TearDown() override {
    if (other_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    }
    GpuTest::TearDown();
  }

  /// Every operation. Each changes `out`, and some `also` other things.
  std::vector<Operation> operations(weir::cuda::CublasHandle& blas, std::span<const float> x,
                                    std::span<const float> labels, std::span<float> out,
                                    std::span<float> also);
  /// Those of an optimizer. `state` is the first step's, `columns` are of kSide x kSide.
  std::vector<Operation> updates(std::span<const float> x, std::span<const float> state,
                                 const weir::CsrColumns& columns, std::span<float> out);
  /// That an operation, which changes `out` from `before`, is held back with its stream.
  void expect_waits(const Operation& operation, DeviceArray<float>& out,
                    const std::vector<float>& before);

  /// The current contents, without a wait for the stream under test.
  std::vector<float> read_beside(std::span<const float> out) {
    std::vector<float> found(out.size());
    // Work enqueued on the default stream by mistake must have ended.
    check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
    check_cuda(
        cudaMemcpyAsync(found.data(), out.data(), out.size_bytes(), cudaMemcpyDefault, other_),
        "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(other_), "cudaStreamSynchronize");
    return found;
  }

 private:
  cudaStream_t other_ = nullptr;
};

std::vector<Operation> StreamsWhileHeld::operations(weir::cuda::CublasHandle& blas,
                                                    std::span<const float> x,
                                                    std::span<const float> labels,
                                                    std::span<float> out, std::span<float> also) {
  namespace gpu = weir::cuda;
  using weir::Activation;
  const auto first = out.first(1);
  const auto row = out.first(kSide);
  const auto s = stream();
  const auto scratch = workspace();
  return {
      {"fill", [=] { gpu::fill(s, out, 7); }},
      {"add", [=] { gpu::add(s, x, out); }},
      {"axpy", [=] { gpu::axpy(s, 2, x, out); }},
      {"scale", [=] { gpu::scale(s, 2, out); }},
      {"sum", [=] { gpu::sum(s, x, first, scratch); }},
      {"squared_distance", [=] { gpu::squared_distance(s, x, x, first, scratch); }},
      {"l2_loss", [=] { gpu::l2_loss(s, x, x, first, scratch); }},
      {"l2_loss_gradient", [=] { gpu::l2_loss_gradient(s, x, x, out); }},
      {"softmax_cross_entropy",
       [=] { gpu::softmax_cross_entropy(s, kLogits, x, labels, first, scratch); }},
      {"softmax_cross_entropy_gradient",
       [=] { gpu::softmax_cross_entropy_gradient(s, kLogits, x, labels, out); }},
      {"count_correct", [=] { gpu::count_correct(s, kLogits, x, labels, first, scratch); }},
      {"fill_normal", [=] { gpu::fill_normal(s, 1, 2, out); }},
      {"sgd", [=] { gpu::sgd(s, out, x, 1); }},
      {"sgd_momentum", [=] { gpu::sgd_momentum(s, out, x, also, 1, 1); }},
      {"bias_activation",
       [=] { gpu::bias_activation(s, kDense, x.first(kSide), out, Activation::kRelu); }},
      {"relu_backward", [=] { gpu::relu_backward(s, x, out); }},
      {"dense_bias_gradient", [=] { gpu::dense_bias_gradient(s, kDense, x, row, scratch); }},
      {"relu_and_bias_gradient",
       [=] { gpu::relu_and_bias_gradient(s, kDense, x, also, row, scratch); }},
      {"dense_forward",
       [=, &blas] {
         gpu::dense_forward(blas, s, kDense, x, x, x.first(kSide), out, Activation::kNone, scratch);
       }},
      {"dense_weight_gradient",
       [=, &blas] { gpu::dense_weight_gradient(blas, s, kDense, x, x, out, scratch); }},
      {"dense_input_gradient",
       [=, &blas] { gpu::dense_input_gradient(blas, s, kDense, x, x, out, scratch); }},
      {"gemm of sums of nothing",
       [=, &blas] {
         gemm(blas, s, {.m = kSide, .n = kSide, .k = 0}, {}, {}, out, {.beta = 2}, scratch);
       }},
  };
}

std::vector<Operation> StreamsWhileHeld::updates(std::span<const float> x,
                                                 std::span<const float> state,
                                                 const weir::CsrColumns& columns,
                                                 std::span<float> out) {
  namespace gpu = weir::cuda;
  const weir::OptimizerOptions sgd{.optimizer = weir::Optimizer::kSgd};
  const auto s = stream();
  const auto words = out.first(weir::kStepStateWords);
  const weir::Weights weights{.w = out, .first = {}, .second = {}, .copy = {}};
  return {
      {"begin_step", [=] { gpu::begin_step(s, words, 0.5, 0.5); }},
      {"end_step", [=] { gpu::end_step(s, words, {}); }},
      {"update", [=] { gpu::update(s, sgd, weights, x, state); }},
      {"update_rows",
       [=] {
         gpu::update_rows(s, sgd, weights, kDense, columns, x, state, weir::UpdatedRows::kTouched);
       }},
  };
}

void StreamsWhileHeld::expect_waits(const Operation& operation, DeviceArray<float>& out,
                                    const std::vector<float>& before) {
  SCOPED_TRACE(operation.name);
  // Once without the hold: the first use of a kernel may wait for everything.
  out.assign(before);
  operation.enqueue();
  EXPECT_NE(out.values(), before);
  out.assign(before);
  {
    const Hold hold(stream());
    operation.enqueue();
    expect_same_bits(read_beside(out.view()), before);
  }
  EXPECT_NE(out.values(), before);
}

TEST_F(StreamsWhileHeld, EveryOperationWaitsForItsOwn) {
  weir::cuda::CublasHandle blas;
  const DeviceArray<float> x(random(kSide * kSide));
  const DeviceArray<float> labels(std::vector<float>(kSide, 3.0F));
  const std::vector<float> before = random(kSide * kSide);
  DeviceArray<float> out(before);
  DeviceArray<float> also(random(kSide * kSide));
  for (const Operation& operation :
       operations(blas, x.view(), labels.view(), out.span(), also.span())) {
    expect_waits(operation, out, before);
  }
}

TEST_F(StreamsWhileHeld, EveryUpdateWaitsForItsOwn) {
  const DeviceArray<float> x(random(kSide * kSide));
  const std::vector<float> first_step = weir::reference::words_of(weir::reference::state_after(1));
  const DeviceArray<float> state(first_step);
  const weir::testing::DeviceColumns columns(
      by_columns(weir::reference::random_sparse({kSide, kSide, 500}, 1)));
  std::vector<float> before = random(kSide * kSide);
  std::ranges::copy(first_step, before.begin());  // which begin_step and end_step find there
  DeviceArray<float> out(before);
  for (const Operation& operation : updates(x.view(), state.view(), columns.view(), out.span())) {
    expect_waits(operation, out, before);
  }
}

}  // namespace
