#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::CsrColumns;
using weir::DenseShape;
using weir::Optimizer;
using weir::OptimizerOptions;
using weir::StepState;
using weir::update_rows;
using weir::UpdatedRows;
using weir::reference::kLayerSizes;
using weir::reference::kOptimizers;
using weir::reference::LayerBatch;
using weir::reference::LayerSize;
using weir::reference::name_of;
using weir::reference::state_after;
using weir::reference::TrainedWeights;
using weir::reference::words_of;

/// The gradient with all its rows.
std::vector<float> whole_gradient(const LayerBatch& batch) {
  const std::size_t n = batch.shape.n;
  std::vector<float> touched(batch.x.touched.size() * n);
  weir::csr_weight_gradient(batch.shape, batch.x.view(), batch.dy, touched);
  std::vector<float> whole(batch.shape.k * n);
  for (std::size_t t = 0; t < batch.x.touched.size(); ++t) {
    std::copy_n(touched.data() + t * n, n, whole.data() + batch.x.touched[t] * n);
  }
  return whole;
}

class UpdateRows : public testing::TestWithParam<Optimizer> {
 protected:
  OptimizerOptions options_{.optimizer = GetParam(), .lr = 0.01};
};

TEST_P(UpdateRows, HaveTheBitsOfTheGradientAndThenTheUpdate) {
  for (const LayerSize& size : kLayerSizes) {
    const std::size_t count = size.x.columns * size.n;
    TrainedWeights fused(GetParam(), count, 1);
    TrainedWeights apart = fused;
    for (std::uint32_t t = 1; t <= 3; ++t) {
      const LayerBatch batch(size.x, size.n, t);
      const std::vector<float> state = words_of(state_after(static_cast<int>(t), 4));
      update_rows(options_, fused.view(), batch.shape, batch.x.view(), batch.dy, state,
                  UpdatedRows::kAll);
      weir::update(options_, apart.view(), whole_gradient(batch), state);
      ASSERT_EQ(fused, apart) << size.x.columns << " x " << size.n << ", step " << t;
    }
  }
}

TEST_P(UpdateRows, OfTouchedOnesAreTheSameThereAndNothingElsewhere) {
  for (const LayerSize& size : kLayerSizes) {
    const LayerBatch batch(size.x, size.n, 1);
    const TrainedWeights before(GetParam(), size.x.columns * size.n, 1, true);
    TrainedWeights lazy = before;
    TrainedWeights dense = before;
    const std::vector<float> state = words_of(state_after(2));
    const auto run = [&](TrainedWeights& weights, UpdatedRows rows) {
      update_rows(options_, weights.view(), batch.shape, batch.x.view(), batch.dy, state, rows);
    };
    run(lazy, UpdatedRows::kTouched);
    run(dense, UpdatedRows::kAll);
    const std::set<std::uint32_t> touched(batch.x.touched.begin(), batch.x.touched.end());
    const auto expect = [&](const auto& found, const auto& there, const auto& elsewhere) {
      for (std::size_t i = 0; i < found.size(); ++i) {
        const bool is_touched = touched.contains(static_cast<std::uint32_t>(i / size.n));
        ASSERT_EQ(found[i], is_touched ? there[i] : elsewhere[i]) << i;
      }
    };
    expect(lazy.w, dense.w, before.w);
    expect(lazy.first, dense.first, before.first);
    expect(lazy.second, dense.second, before.second);
    expect(lazy.copy, dense.copy, before.copy);
  }
}

// What makes the two different results.
TEST_P(UpdateRows, OfAllLetAnUntouchedRowMoveOnByItsMoments) {
  const LayerBatch batch({4, 3, 0}, 2, 1);
  TrainedWeights trained(GetParam(), 6, 1);
  const TrainedWeights before = trained;
  update_rows(options_, trained.view(), batch.shape, batch.x.view(), batch.dy,
              words_of(state_after(1)), UpdatedRows::kAll);
  for (std::size_t i = 0; i < 6; ++i) {
    if (GetParam() == Optimizer::kSgd) {
      EXPECT_EQ(trained.w[i], before.w[i]);
      continue;
    }
    EXPECT_NE(trained.w[i], before.w[i]);
    EXPECT_NEAR(trained.first[i], 0.9F * before.first[i], 1e-6);
    if (GetParam() != Optimizer::kMomentum) {
      EXPECT_EQ(trained.second[i], 0.999F * before.second[i]);
    }
  }
}

TEST_P(UpdateRows, AfterAnOverflowDoNotChange) {
  const LayerBatch batch({5, 6, 500}, 3, 1);
  const TrainedWeights before(GetParam(), 18, 1, true);
  StepState state = state_after(3, 64);
  state.overflow = 1;
  for (const UpdatedRows rows : {UpdatedRows::kAll, UpdatedRows::kTouched}) {
    TrainedWeights trained = before;
    update_rows(options_, trained.view(), batch.shape, batch.x.view(), batch.dy, words_of(state),
                rows);
    EXPECT_EQ(trained, before);
  }
}

TEST_P(UpdateRows, OfSizesThatDoNotFitAreRefusedAndNothingChanges) {
  const LayerBatch batch({5, 6, 1000}, 3, 1);
  const TrainedWeights before(GetParam(), 18, 1);
  TrainedWeights trained = before;
  const std::vector<float> state = words_of(state_after(1));
  const auto refused = [&](DenseShape shape, const CsrColumns& x, std::span<const float> dy,
                           std::span<const float> words) {
    EXPECT_THROW(update_rows(options_, trained.view(), shape, x, dy, words, UpdatedRows::kAll),
                 weir::UsageError);
  };
  const CsrColumns x = batch.x.view();
  CsrColumns few_starts = x;
  few_starts.starts = x.starts.first(6);
  CsrColumns few_values = x;
  few_values.values = x.values.first(29);
  refused({5, 7, 3}, x, batch.dy, state);
  refused({4, 6, 3}, x, batch.dy, state);
  refused(batch.shape, few_starts, batch.dy, state);
  refused(batch.shape, few_values, batch.dy, state);
  refused(batch.shape, x, batch.dy, std::span(state).first(15));
  EXPECT_EQ(trained, before);
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRows, testing::ValuesIn(kOptimizers),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
