// What only a device has: streams, for which every operation waits, and for no other; workspaces;
// states that must be aligned; and limits of a launch.

#include <algorithm>
#include <functional>
#include <numeric>

#include "kernels/sums/sums_cuda.hpp"
#include "support/gate.hpp"
#include "support/held.hpp"
#include "tests/kernels/device.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::check_cuda;
using weir::DenseShape;
using weir::LogitShape;
using weir::UsageError;
using weir::testing::Array;
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
  bool scratch = false;  ///< whether it takes a workspace
};

class StreamsWhileHeld : public weir::testing::KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (HasFatalFailure()) return;
    check_cuda(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  void TearDown() override {
    if (other_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    }
    KernelTest::TearDown();
  }

  /// Every operation. Each changes `out`, and some `also` other things.
  std::vector<Operation> operations(std::span<const float> x, std::span<const float> labels,
                                    std::span<float> out, std::span<float> also,
                                    const weir::SparseLabels& sparse, std::span<float> scratch);
  /// Those of an optimizer. `state` is the first step's, `columns` are of kSide x kSide.
  std::vector<Operation> updates(std::span<const float> x, std::span<const float> state,
                                 const weir::CsrColumns& columns, std::span<float> out);
  /// That an operation, which changes `out` from `before`, is held back with its stream.
  void expect_waits(const Operation& operation, Array<float>& out,
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

std::vector<Operation> StreamsWhileHeld::operations(std::span<const float> x,
                                                    std::span<const float> labels,
                                                    std::span<float> out, std::span<float> also,
                                                    const weir::SparseLabels& sparse,
                                                    std::span<float> scratch) {
  namespace gpu = weir::cuda;
  using weir::Activation;
  const auto first = out.first(1);
  const auto row = out.first(kSide);
  const auto s = stream();
  weir::cuda::CublasHandle& blas = this->blas();
  return {
      {"fill", [=] { gpu::fill(s, out, 7); }},
      {"add", [=] { gpu::add(s, x, out); }},
      {"scale", [=] { gpu::scale(s, 2, out); }},
      {"sum", [=] { gpu::sum(s, x, first, scratch); }, true},
      {"squared_distance", [=] { gpu::squared_distance(s, x, x, first, scratch); }, true},
      {"l2_loss", [=] { gpu::l2_loss(s, x, x, first, scratch); }, true},
      {"l2_loss_gradient", [=] { gpu::l2_loss_gradient(s, x, x, out); }},
      {"softmax_cross_entropy",
       [=] { gpu::softmax_cross_entropy(s, kLogits, x, labels, first, scratch); }, true},
      {"softmax_cross_entropy_gradient",
       [=] { gpu::softmax_cross_entropy_gradient(s, kLogits, x, labels, out); }},
      {"count_correct", [=] { gpu::count_correct(s, kLogits, x, labels, first, scratch); }, true},
      {"fill_normal", [=] { gpu::fill_normal(s, 1, 2, out); }},
      {"sgd", [=] { gpu::sgd(s, out, x, 1); }},
      {"sgd_momentum", [=] { gpu::sgd_momentum(s, out, x, also, 1, 1); }},
      {"bias_activation",
       [=] { gpu::bias_activation(s, kDense, x.first(kSide), out, Activation::kRelu); }},
      {"relu_backward", [=] { gpu::relu_backward(s, x, out); }},
      {"dense_bias_gradient", [=] { gpu::dense_bias_gradient(s, kDense, x, row, scratch); }, true},
      {"relu_and_bias_gradient",
       [=] { gpu::relu_and_bias_gradient(s, kDense, x, also, row, scratch); }, true},
      {"dense_forward",
       [=, &blas] {
         gpu::dense_forward(blas, s, weir::Precision::kFloat32, kDense, x, x, x.first(kSide), out,
                            Activation::kNone, scratch);
       },
       true},
      {"dense_weight_gradient",
       [=, &blas] {
         gpu::dense_weight_gradient(blas, s, weir::Precision::kFloat32, kDense, x, x, out, scratch);
       },
       true},
      {"dense_input_gradient",
       [=, &blas] {
         gpu::dense_input_gradient(blas, s, weir::Precision::kFloat32, kDense, x, x, out, scratch);
       },
       true},
      {"gemm",
       [=, &blas] {
         weir::cuda::gemm(blas, s, weir::Precision::kFloat32, {.m = kSide, .n = kSide, .k = kSide},
                          x, x, out, {}, scratch);
       },
       true},
      {"softmax_statistics",
       [=] { gpu::softmax_statistics(s, sparse, x, out.first(4 * kSide), scratch); }, true},
      {"softmax_loss", [=] { gpu::softmax_loss(s, sparse, x.first(4 * kSide), first, scratch); },
       true},
      {"softmax_gradient", [=] { gpu::softmax_gradient(s, sparse, x, x.first(4 * kSide), out); }},
      {"logistic_loss", [=] { gpu::logistic_loss(s, sparse, x, first, scratch); }, true},
      {"logistic_loss_and_gradient",
       [=] { gpu::logistic_loss_and_gradient(s, sparse, x, first, also, scratch); }, true},
      {"count_hits", [=] { gpu::count_hits(s, sparse, x, first, scratch); }, true},
      {"top_logits", [=] { gpu::top_logits(s, sparse, x, out.first(2 * kSide), scratch); }, true},
      {"merge_softmax_statistics",
       [=] { gpu::merge_softmax_statistics(s, x, out.first(4 * kSide)); }},
      {"merge_hits", [=] { gpu::merge_hits(s, x, kSide, first, scratch); }, true},
      {"gemm of sums of nothing",
       [=, &blas] {
         weir::cuda::gemm(blas, s, weir::Precision::kFloat32, {.m = kSide, .n = kSide, .k = 0}, {},
                          {}, out, {.beta = 2}, scratch);
       },
       true},
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

void StreamsWhileHeld::expect_waits(const Operation& operation, Array<float>& out,
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

/// What the operations take.
struct OperationInputs {
  explicit OperationInputs(const std::vector<float>& numbers) : x(numbers), also(numbers) {
    std::vector<std::uint32_t> counts(kSide + 1);
    std::iota(counts.begin(), counts.end(), 0U);
    starts.assign(counts);
    indices.assign({counts.begin(), counts.end() - 1});
  }
  [[nodiscard]] weir::SparseLabels sparse() const {
    return {.classes = kSide, .starts = starts.view(), .indices = indices.view()};
  }

  Array<float> x;
  Array<float> also;
  Array<float> labels{std::vector<float>(kSide, 3.0F)};
  Array<std::uint32_t> starts{kSide + 1};
  Array<std::uint32_t> indices{kSide};
};

TEST_F(StreamsWhileHeld, EveryOperationWaitsForItsOwn) {
  OperationInputs in(random(kSide * kSide));
  const std::vector<float> before = random(kSide * kSide);
  Array<float> out(before);
  for (const Operation& operation : operations(in.x.view(), in.labels.view(), out.span(),
                                               in.also.span(), in.sparse(), workspace())) {
    expect_waits(operation, out, before);
  }
}

TEST_F(StreamsWhileHeld, EveryUpdateWaitsForItsOwn) {
  const Array<float> x(random(kSide * kSide));
  const std::vector<float> first_step = weir::reference::words_of(weir::reference::state_after(1));
  const Array<float> state(first_step);
  const weir::reference::SparseColumns x_columns =
      by_columns(weir::reference::random_sparse({kSide, kSide, 500}, 1));
  const Array<std::uint32_t> touched(x_columns.touched);
  const Array<std::uint32_t> starts(x_columns.starts);
  const Array<std::uint32_t> rows(x_columns.rows);
  const Array<float> values(x_columns.values);
  const weir::CsrColumns columns{touched.view(), starts.view(), rows.view(), values.view()};
  std::vector<float> before = random(kSide * kSide);
  std::ranges::copy(first_step, before.begin());  // which begin_step and end_step find there
  Array<float> out(before);
  for (const Operation& operation : updates(x.view(), state.view(), columns, out.span())) {
    expect_waits(operation, out, before);
  }
}

class Workspaces : public StreamsWhileHeld {};

TEST_F(Workspaces, ThatAreTooSmallOrNotAlignedAreRefusedAndNothingChanges) {
  OperationInputs in(random(kSide * kSide));
  Array<float> out(kSide * kSide);
  Array<float> shifted(weir::cuda::kWorkspaceElements, 4);
  const auto small = workspace().first(weir::cuda::kWorkspaceElements - 1);
  for (const auto scratch : {small, shifted.span()}) {
    std::size_t refused = 0;
    for (const Operation& operation :
         operations(in.x.view(), in.labels.view(), out.span(), out.span(), in.sparse(), scratch)) {
      if (!operation.scratch) continue;
      ++refused;
      EXPECT_THROW(operation.enqueue(), UsageError) << operation.name;
    }
    EXPECT_EQ(refused, 19U);
  }
  EXPECT_TRUE(out.is_unwritten());
}

class OnlyOnDevices : public weir::testing::KernelTest {};

TEST_F(OnlyOnDevices, StatesThatAreNotAlignedAndSumsOfNoOneElementAreRefused) {
  const std::vector<float> before = weir::reference::words_of(weir::reference::state_after(3, 64));
  Array<float> crooked(before, 1);
  Array<float> out(8);
  const auto state = crooked.span();
  EXPECT_THROW(flag_not_finite(out.view(), state), UsageError);
  EXPECT_THROW(begin_step(state, 0.9, 0.999), UsageError);
  EXPECT_THROW(end_step(state, weir::LossScaling{}), UsageError);
  const weir::OptimizerOptions sgd{.optimizer = weir::Optimizer::kSgd};
  EXPECT_THROW(update(sgd, weir::Weights{.w = out.span(), .first = {}, .second = {}, .copy = {}},
                      out.view(), state),
               UsageError);
  const Array<float> x(random(8));
  EXPECT_THROW(sum(x.view(), out.span().first(2)), UsageError);
  EXPECT_THROW(squared_distance(x.view(), x.view(), out.span().first(2)), UsageError);
  EXPECT_TRUE(out.is_unwritten());
  EXPECT_EQ(crooked.values(), before);
}

// Sums of more than 2^29 terms, with a scratch memory that fills up earlier.
TEST_F(OnlyOnDevices, TilesThatExceedTheScratchMemoryAreAddedInTheSameOrder) {
  constexpr std::size_t kPiece = weir::kSumTile;
  for (const std::size_t count : {1U, 1024U, 1025U, 2048U, 2049U, 4096U, 5000U, 100000U}) {
    SCOPED_TRACE(count);
    const std::vector<float> terms = random(count);
    const Array<float> device_terms(terms);
    Array<float> scratch(4 * weir::kSumTile);
    Array<float> out(1);
    weir::cuda::TileSums sums("test", stream(), scratch.span());
    ASSERT_EQ(sums.capacity() % kPiece, 0U);
    for (std::size_t begin = 0; begin < count; begin += kPiece) {
      const std::size_t length = std::min(kPiece, count - begin);
      check_cuda(cudaMemcpyAsync(sums.next(length), device_terms.view().data() + begin,
                                 length * sizeof(float), cudaMemcpyDefault, stream()),
                 "cudaMemcpyAsync");
    }
    sums.finish({.divisor = 3.0F, .factor = 0.5F}, out.span().data());
    expect_same_bits(out.values(), {0.5F * (weir::sum(terms) / 3.0F)});
  }
}

// Two pieces of columns, and two of rows and of columns.
TEST_F(OnlyOnDevices, BiasGradientsOfMoreThanFitsAtOnceHaveTheCpusBits) {
  for (const DenseShape shape : {DenseShape{.m = 1, .k = 1, .n = (1U << 20U) + 5},
                                 DenseShape{.m = 8192 + 33, .k = 1, .n = 4100}}) {
    const std::vector<float> y = random(shape.m * shape.n);
    std::vector<float> dy = random(shape.m * shape.n);
    std::vector<float> expected(shape.n);
    Array<float> gradient(dy);
    Array<float> db(shape.n);
    weir::dense_bias_gradient(shape, dy, expected);
    dense_bias_gradient(shape, gradient.view(), db.span());
    expect_same_bits(db.values(), expected);
    weir::relu_and_bias_gradient(shape, y, dy, expected);
    relu_and_bias_gradient(shape, Array<float>(y).view(), gradient.span(), db.span());
    expect_same_bits(db.values(), expected);
    EXPECT_TRUE(gradient.values() == dy);
  }
}

}  // namespace
