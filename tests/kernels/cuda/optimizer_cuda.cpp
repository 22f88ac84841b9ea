#include "allocator/base/error.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/optimizer/update.hpp"
#include "tests/kernels/cuda/device_sparse_cuda.hpp"
#include "tests/kernels/cuda/gpu_test_cuda.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::DenseShape;
using weir::HalfKind;
using weir::LossScaling;
using weir::Optimizer;
using weir::OptimizerOptions;
using weir::StepState;
using weir::UpdatedRows;
using weir::UsageError;
using weir::Weights;
using weir::reference::kLayerSizes;
using weir::reference::kOptimizers;
using weir::reference::LayerBatch;
using weir::reference::LayerSize;
using weir::reference::state_after;
using weir::reference::TrainedWeights;
using weir::reference::words_of;
using weir::testing::describe;
using weir::testing::DeviceArray;
using weir::testing::DeviceColumns;
using weir::testing::expect_same_bits;
using weir::testing::Extent;
using weir::testing::extents;
using weir::testing::fresh_seed;

/// Where the arrays of DeviceWeights begin, in elements behind a boundary of 256 bytes.
struct Offsets {
  std::size_t floats = 0;
  std::size_t copy = 0;
};

/// TrainedWeights on a device.
class DeviceWeights {
 public:
  DeviceWeights(const TrainedWeights& host, Offsets offsets)
      : w_(host.w, offsets.floats),
        first_(host.first, offsets.floats),
        second_(host.second, offsets.floats),
        copy_(host.copy, offsets.copy) {}

  [[nodiscard]] Weights view(HalfKind kind = HalfKind::kBf16) {
    return {w_.span(), first_.span(), second_.span(), {copy_.span(), kind}};
  }
  void expect(const TrainedWeights& expected) const {
    expect_same_bits(w_.values(), expected.w);
    expect_same_bits(first_.values(), expected.first);
    expect_same_bits(second_.values(), expected.second);
    EXPECT_EQ(copy_.values(), expected.copy);
    EXPECT_TRUE(w_.guards_hold() && first_.guards_hold() && second_.guards_hold() &&
                copy_.guards_hold());
  }

 private:
  DeviceArray<float> w_;
  DeviceArray<float> first_;
  DeviceArray<float> second_;
  DeviceArray<std::uint16_t> copy_;
};

/// Few steps in, with a loss scale.
StepState a_state() { return state_after(3, 64); }
StepState an_overflow() {
  StepState state = a_state();
  state.overflow = 1;
  return state;
}

class OptimizerOnDevice : public weir::testing::GpuTest {};

TEST_F(OptimizerOnDevice, StepsBeginAndEndAsOnTheCpu) {
  const LossScaling scaling{.grow_after = 2};
  StepState expected = weir::initial_step_state(scaling);
  DeviceArray<float> words(words_of(expected));
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      expected.overflow = 1;
      words.assign(words_of(expected));
    }
    weir::cuda::begin_step(stream(), words.span(), 0.9, 0.999);
    weir::cuda::end_step(stream(), words.span(), scaling);
    expected = ended(begun(expected, 0.9, 0.999), scaling);
    EXPECT_EQ(weir::load_step_state(words.values()), expected) << step;
  }
  EXPECT_EQ(expected.skipped_steps, 1U);
  EXPECT_EQ(expected.loss_scale, 131072.0F);
  EXPECT_TRUE(words.guards_hold());
}

TEST_F(OptimizerOnDevice, UpdatesHaveTheCpusBits) {
  const DeviceArray<float> state(words_of(a_state()));
  for (const Optimizer optimizer : kOptimizers) {
    const OptimizerOptions options{.optimizer = optimizer, .lr = 0.01};
    for (const Extent extent : extents()) {
      SCOPED_TRACE(weir::reference::name_of(optimizer) + ", " + describe(extent));
      TrainedWeights weights(optimizer, extent.size, fresh_seed());
      const std::vector<float> g = random(extent.size);
      DeviceWeights on_device(weights, {.floats = extent.offset});
      const DeviceArray<float> device_g(g, extent.offset);
      weir::cuda::update(stream(), options, on_device.view(), device_g.view(), state.view());
      weir::update(options, weights.view(), g, words_of(a_state()));
      on_device.expect(weights);
    }
  }
}

TEST_F(OptimizerOnDevice, CopiesHaveTheCpusBitsAtAnyOffset) {
  const OptimizerOptions options{.optimizer = Optimizer::kAdam, .lr = 0.01};
  const DeviceArray<float> state(words_of(a_state()));
  for (const HalfKind kind : {HalfKind::kBf16, HalfKind::kFp16}) {
    for (const Offsets offsets : {Offsets{0, 0}, Offsets{3, 3}, Offsets{0, 1}, Offsets{1, 0}}) {
      TrainedWeights weights(Optimizer::kAdam, 1027, fresh_seed(), true);
      const std::vector<float> g = random(1027);
      DeviceWeights on_device(weights, offsets);
      const DeviceArray<float> device_g(g, offsets.floats);
      weir::cuda::update(stream(), options, on_device.view(kind), device_g.view(), state.view());
      weir::update(options, weights.view(kind), g, words_of(a_state()));
      on_device.expect(weights);
    }
  }
}

TEST_F(OptimizerOnDevice, UpdatesOfRowsHaveTheCpusBits) {
  const DeviceArray<float> state(words_of(a_state()));
  for (const Optimizer optimizer : kOptimizers) {
    const OptimizerOptions options{.optimizer = optimizer, .lr = 0.01};
    for (const LayerSize& size : kLayerSizes) {
      SCOPED_TRACE(weir::reference::name_of(optimizer) + ", " + std::to_string(size.x.columns) +
                   " x " + std::to_string(size.n));
      const LayerBatch batch(size.x, size.n, static_cast<std::uint32_t>(fresh_seed()));
      const DeviceColumns x(batch.x);
      for (const UpdatedRows rows : {UpdatedRows::kAll, UpdatedRows::kTouched}) {
        for (const Offsets offsets : {Offsets{0, 0}, Offsets{0, 1}, Offsets{1, 0}}) {
          TrainedWeights weights(optimizer, size.x.columns * size.n, fresh_seed(), true);
          DeviceWeights on_device(weights, offsets);
          const DeviceArray<float> dy(batch.dy, offsets.floats);
          weir::cuda::update_rows(stream(), options, on_device.view(), batch.shape, x.view(),
                                  dy.view(), state.view(), rows);
          weir::update_rows(options, weights.view(), batch.shape, batch.x.view(), batch.dy,
                            words_of(a_state()), rows);
          on_device.expect(weights);
        }
      }
    }
  }
}

TEST_F(OptimizerOnDevice, AfterAnOverflowNothingChangesButTheScale) {
  const LayerBatch batch({5, 6, 500}, 4, 1);
  const DeviceColumns x(batch.x);
  const DeviceArray<float> dy(batch.dy);
  const DeviceArray<float> g(random(24));
  for (const Optimizer optimizer : kOptimizers) {
    const OptimizerOptions options{.optimizer = optimizer, .lr = 0.01};
    const TrainedWeights weights(optimizer, 24, fresh_seed(), true);
    DeviceWeights on_device(weights, {});
    DeviceArray<float> state(words_of(an_overflow()));
    weir::cuda::begin_step(stream(), state.span(), 0.9, 0.999);
    weir::cuda::update(stream(), options, on_device.view(), g.view(), state.view());
    for (const UpdatedRows rows : {UpdatedRows::kAll, UpdatedRows::kTouched}) {
      weir::cuda::update_rows(stream(), options, on_device.view(), batch.shape, x.view(), dy.view(),
                              state.view(), rows);
    }
    weir::cuda::end_step(stream(), state.span(), {});
    on_device.expect(weights);
    StepState expected = a_state();
    expected.loss_scale = 32;
    expected.skipped_steps = 1;
    EXPECT_EQ(weir::load_step_state(state.values()), expected);
  }
}

TEST_F(OptimizerOnDevice, WhatIsNotAllowedIsRefusedAndNothingChanges) {
  const OptimizerOptions options{.lr = 0.01};
  const LayerBatch batch({5, 6, 1000}, 4, 1);
  const DeviceColumns x(batch.x);
  const DeviceArray<float> dy(batch.dy);
  const DeviceArray<float> g(random(24));
  const TrainedWeights weights(options.optimizer, 24, fresh_seed());
  DeviceWeights on_device(weights, {});
  DeviceArray<float> state(words_of(a_state()));
  DeviceArray<float> crooked(words_of(a_state()), 1);
  const auto update_refused = [&](const OptimizerOptions& bad, auto gradient, auto words) {
    EXPECT_THROW(weir::cuda::update(stream(), bad, on_device.view(), gradient, words), UsageError);
  };
  update_refused({.lr = -1}, g.view(), state.view());
  update_refused(options, g.view().first(23), state.view());
  update_refused(options, g.view(), state.view().first(15));
  update_refused(options, g.view(), crooked.view());
  const auto rows_refused = [&](DenseShape shape, auto output, auto words) {
    EXPECT_THROW(weir::cuda::update_rows(stream(), options, on_device.view(), shape, x.view(),
                                         output, words, UpdatedRows::kAll),
                 UsageError);
  };
  rows_refused({5, 7, 4}, dy.view(), state.view());
  rows_refused(batch.shape, dy.view().first(19), state.view());
  rows_refused(batch.shape, dy.view(), crooked.view());
  EXPECT_THROW(weir::cuda::begin_step(stream(), crooked.span(), 0.9, 0.999), UsageError);
  EXPECT_THROW(weir::cuda::begin_step(stream(), state.span(), 1, 0.999), UsageError);
  EXPECT_THROW(weir::cuda::end_step(stream(), state.span(), {.grow_after = 0}), UsageError);
  on_device.expect(weights);
  EXPECT_EQ(weir::load_step_state(state.values()), a_state());
}

}  // namespace
