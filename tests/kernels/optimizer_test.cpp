// The updates of the weights, and the steps that go with them.

#include <algorithm>
#include <set>

#include "tests/kernels/device.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::CsrColumns;
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
using weir::reference::kNan;
using weir::reference::kOptimizers;
using weir::reference::LayerBatch;
using weir::reference::LayerSize;
using weir::reference::name_of;
using weir::reference::random_numbers;
using weir::reference::state_after;
using weir::reference::TrainedWeights;
using weir::reference::words_of;
using weir::testing::Array;
using weir::testing::Extent;
using weir::testing::for_each_extent;
using weir::testing::fresh_seed;

constexpr int kSteps = 100;
/// Not a multiple of four, and more than the CPU's kernel does at a time.
constexpr std::size_t kCount = 2051;

/// The formulas in double: one weight from the start.
struct DoubleWeight {
  double w = 0;
  double first = 0;
  double second = 0;
  double error = 0;  ///< how far a float may be away

  void step(const OptimizerOptions& o, double g, int t) {
    const double before = w;
    move(o, g, t);
    // Of the weight, each step rounds once; a millionth is for the roundings of how far it goes.
    error += 1.01 * weir::reference::kUnitRoundoff * std::abs(w) + 1e-6 * std::abs(w - before);
  }

 private:
  void move(const OptimizerOptions& o, double g, int t) {
    if (o.optimizer == Optimizer::kSgd) {
      w -= o.lr * g;
    } else if (o.optimizer == Optimizer::kMomentum) {
      first = o.momentum * first + g;
      w -= o.lr * first;
    } else {
      first = o.beta1 * first + (1 - o.beta1) * g;
      const double rate = o.lr / (1 - std::pow(o.beta1, t));
      if (o.optimizer == Optimizer::kAdam) {
        second = o.beta2 * second + (1 - o.beta2) * g * g;
        w -= rate * first / (std::sqrt(second / (1 - std::pow(o.beta2, t))) + o.eps);
      } else {
        second = std::max(o.beta2 * second, std::abs(g) + o.eps);
        w -= rate * first / second;
      }
    }
  }
};

/// Where the arrays of DeviceWeights begin, in elements behind a boundary of 256 bytes.
struct Offsets {
  std::size_t floats = 0;
  std::size_t copy = 0;
};

/// TrainedWeights where the kernels work on them.
class DeviceWeights {
 public:
  explicit DeviceWeights(const TrainedWeights& host, Offsets offsets = {})
      : w_(host.w, offsets.floats),
        first_(host.first, offsets.floats),
        second_(host.second, offsets.floats),
        copy_(host.copy, offsets.copy) {}

  [[nodiscard]] Weights view(HalfKind kind = HalfKind::kBf16) {
    return {w_.span(), first_.span(), second_.span(), {copy_.span(), kind}};
  }
  [[nodiscard]] TrainedWeights values() const {
    TrainedWeights found(Optimizer::kSgd, 0, 0);
    found.w = w_.values();
    found.first = first_.values();
    found.second = second_.values();
    found.copy = copy_.values();
    return found;
  }
  void expect(const TrainedWeights& expected) const { EXPECT_EQ(values(), expected); }

 private:
  Array<float> w_;
  Array<float> first_;
  Array<float> second_;
  Array<std::uint16_t> copy_;
};

/// A batch's X, on the device.
class DeviceColumns {
 public:
  explicit DeviceColumns(const weir::reference::SparseColumns& x)
      : touched_(x.touched), starts_(x.starts), rows_(x.rows), values_(x.values) {}
  [[nodiscard]] CsrColumns view() const {
    return {touched_.view(), starts_.view(), rows_.view(), values_.view()};
  }

 private:
  Array<std::uint32_t> touched_;
  Array<std::uint32_t> starts_;
  Array<std::uint32_t> rows_;
  Array<float> values_;
};

class Steps : public weir::testing::KernelTest {};

TEST_F(Steps, BeginAndEndWhereverTheirStateMayLie) {
  const LossScaling scaling{.grow_after = 2};
  StepState expected = weir::initial_step_state(scaling);
  // On the CPU it need not be aligned.
  Array<float> words(words_of(expected), weir::testing::kOnCuda ? 0 : 1);
  for (int step = 0; step < 6; ++step) {
    if (step == 3) {
      expected.overflow = 1;
      words.assign(words_of(expected));
    }
    begin_step(words.span(), 0.9, 0.999);
    end_step(words.span(), scaling);
    expected = ended(begun(expected, 0.9, 0.999), scaling);
    EXPECT_EQ(weir::load_step_state(words.values()), expected) << step;
  }
  EXPECT_EQ(expected.skipped_steps, 1U);
  EXPECT_EQ(expected.loss_scale, 131072.0F);
}

TEST_F(Steps, ThatAreNotAllowedAreRefusedAndNothingChanges) {
  Array<float> words(words_of(state_after(2, 8)));
  const auto fifteen = words.span().first(15);
  EXPECT_THROW(begin_step(fifteen, 0.9, 0.999), UsageError);
  EXPECT_THROW(end_step(fifteen, LossScaling{}), UsageError);
  for (const double beta : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THROW(begin_step(words.span(), beta, 0.999), UsageError);
    EXPECT_THROW(begin_step(words.span(), 0.9, beta), UsageError);
  }
  for (const LossScaling& scaling : {LossScaling{.least = 0}, LossScaling{.least = 4, .most = 2},
                                     LossScaling{.grow_after = 0}}) {
    EXPECT_THROW(end_step(words.span(), scaling), UsageError);
  }
  EXPECT_EQ(weir::load_step_state(words.values()), state_after(2, 8));
}

class Update : public weir::testing::KernelTest, public testing::WithParamInterface<Optimizer> {
 protected:
  OptimizerOptions options_{.optimizer = GetParam(), .lr = 0.01};

  /// The weights after one update.
  TrainedWeights updated(const TrainedWeights& before, const std::vector<float>& g,
                         const StepState& state, HalfKind kind = HalfKind::kBf16,
                         Offsets offsets = {}) {
    DeviceWeights weights(before, offsets);
    update(options_, weights.view(kind), Array<float>(g, offsets.floats).view(),
           Array<float>(words_of(state)).view());
    return weights.values();
  }
};

TEST_P(Update, IsThatOfFloat64UpToItsRoundingsOver100Steps) {
  TrainedWeights start(GetParam(), kCount, 1);
  std::ranges::fill(start.first, 0.0F);
  std::ranges::fill(start.second, 0.0F);
  DeviceWeights trained(start);
  std::vector<DoubleWeight> exact(kCount);
  for (std::size_t i = 0; i < kCount; ++i) exact[i].w = static_cast<double>(start.w[i]);
  StepState state;
  for (int t = 1; t <= kSteps; ++t) {
    std::vector<float> g = random_numbers(kCount, static_cast<std::uint64_t>(10 + t));
    for (std::size_t i = 0; i < kCount; ++i) {
      // As for rows that are not touched, and of many sizes.
      g[i] = (i + static_cast<std::size_t>(t)) % 5 == 0 ? 0.0F : std::ldexp(g[i], -int(i % 16));
      exact[i].step(options_, static_cast<double>(g[i]), t);
    }
    state = begun(state, options_.beta1, options_.beta2);
    update(options_, trained.view(), Array<float>(g).view(), Array<float>(words_of(state)).view());
  }
  weir::testing::expect_within(trained.values().w, [&](std::size_t i) {
    return weir::reference::Bounded{exact[i].w, exact[i].error};
  });
}

TEST_P(Update, HasTheCpusBitsAtAnyOffsetAndWritesACopyInAShorterFormatInTheSamePass) {
  const StepState state = state_after(3, 64);
  for_each_extent([&](Extent extent) {
    TrainedWeights expected(GetParam(), extent.size, fresh_seed());
    const TrainedWeights before = expected;
    const std::vector<float> g = random(extent.size);
    weir::update(options_, expected.view(), g, words_of(state));
    EXPECT_EQ(updated(before, g, state, HalfKind::kBf16, {.floats = extent.offset}), expected);
  });
  const std::vector<float> g = random(kCount);
  for (const HalfKind kind : {HalfKind::kBf16, HalfKind::kFp16}) {
    for (const Offsets offsets : {Offsets{0, 0}, Offsets{3, 3}, Offsets{0, 1}, Offsets{1, 0}}) {
      const TrainedWeights before(GetParam(), kCount, fresh_seed(), true);
      TrainedWeights plain = before;
      plain.copy.clear();
      weir::update(options_, plain.view(), g, words_of(state));
      plain.copy.resize(kCount);
      weir::to_half(plain.w, plain.copy, kind);
      EXPECT_EQ(updated(before, g, state, kind, offsets), plain);
    }
  }
}

TEST_P(Update, OfAScaledGradientHasTheBitsOfTheGradientsOwn) {
  const std::vector<float> g = random(kCount);
  std::vector<float> scaled = g;
  for (float& value : scaled) value *= 65536.0F;
  const TrainedWeights before(GetParam(), kCount, 1);
  const TrainedWeights plain = updated(before, g, state_after(3));
  EXPECT_EQ(updated(before, scaled, state_after(3, 65536)), plain);
  EXPECT_NE(plain, before);
}

TEST_P(Update, AfterAnOverflowChangesNothingButTheScale) {
  const TrainedWeights before(GetParam(), 24, 1, true);
  DeviceWeights trained(before);
  std::vector<float> g = random(24);
  g[7] = kNan;
  const LayerBatch batch({5, 6, 500}, 4, 1);
  const DeviceColumns x(batch.x);
  StepState state = state_after(3, 64);
  state.overflow = 1;
  Array<float> words(words_of(state));
  begin_step(words.span(), options_.beta1, options_.beta2);
  update(options_, trained.view(), Array<float>(g).view(), words.view());
  for (const UpdatedRows rows : {UpdatedRows::kAll, UpdatedRows::kTouched}) {
    update_rows(options_, trained.view(), batch.shape, x.view(), Array<float>(batch.dy).view(),
                words.view(), rows);
  }
  end_step(words.span(), LossScaling{});
  trained.expect(before);
  StepState expected = state_after(3, 32);
  expected.skipped_steps = 1;
  EXPECT_EQ(weir::load_step_state(words.values()), expected);
}

TEST_P(Update, KeepsANan) {
  const TrainedWeights found =
      updated(TrainedWeights(GetParam(), 3, 1), {1, kNan, 1}, state_after(1));
  EXPECT_FALSE(std::isnan(found.w[0]));
  EXPECT_TRUE(std::isnan(found.w[1]));
  EXPECT_FALSE(std::isnan(found.w[2]));
}

TEST_P(Update, OfZeroGradientsFromTheStartLeavesTheWeights) {
  TrainedWeights before(GetParam(), 5, 1);
  std::ranges::fill(before.first, 0.0F);
  std::ranges::fill(before.second, 0.0F);
  TrainedWeights trained = before;
  for (int t = 1; t <= 3; ++t) trained = updated(trained, std::vector<float>(5), state_after(t));
  EXPECT_EQ(trained.w, before.w);
}

TEST_P(Update, AtLargeTHasNoCorrectionsLeft) {
  StepState state = state_after(1);
  state.steps = 4'000'000'000U;
  state.beta1_power = state.beta2_power = 0;
  const TrainedWeights before(GetParam(), kCount, 1);
  const std::vector<float> g = random_numbers(kCount, 2);
  weir::testing::expect_within(updated(before, g, state).w, [&](std::size_t i) {
    const auto at = [i](const std::vector<float>& moment) {
      return moment.empty() ? 0.0 : static_cast<double>(moment[i]);
    };
    DoubleWeight exact{.w = at(before.w), .first = at(before.first), .second = at(before.second)};
    exact.step(options_, static_cast<double>(g[i]), 4'000'000);
    return weir::reference::Bounded{exact.w, exact.error};
  });
}

TEST_P(Update, RefusesWhatIsNotAllowedAndChangesNothing) {
  const TrainedWeights before(GetParam(), 4, 1, true);
  DeviceWeights trained(before);
  const Array<float> gradient(std::vector<float>(4, 1.0F));
  const Array<float> words(words_of(state_after(1)));
  Array<float> other(5);
  const auto refused = [&](const OptimizerOptions& options, const Weights& weights, auto g,
                           auto state) {
    EXPECT_THROW(update(options, weights, g, state), UsageError);
  };
  const auto g = gradient.view();
  const auto state = words.view();
  const auto with = [&](auto member, double value) {
    OptimizerOptions changed = options_;
    changed.*member = value;
    return changed;
  };
  for (const double bad : {-1.0, HUGE_VAL, std::nan("")}) {
    for (const auto member :
         {&OptimizerOptions::lr, &OptimizerOptions::momentum, &OptimizerOptions::beta1,
          &OptimizerOptions::beta2, &OptimizerOptions::eps}) {
      refused(with(member, bad), trained.view(), g, state);
    }
  }
  refused(with(&OptimizerOptions::beta1, 1), trained.view(), g, state);
  refused(with(&OptimizerOptions::eps, 1e-60), trained.view(), g, state);
  refused(options_, trained.view(), g.first(3), state);
  refused(options_, trained.view(), g, state.first(8));
  for (const auto member : {&Weights::first, &Weights::second}) {
    Weights bad = trained.view();
    bad.*member = other.span();
    refused(options_, bad, g, state);
  }
  Weights bad_copy = trained.view();
  bad_copy.copy.words = bad_copy.copy.words.first(3);
  refused(options_, bad_copy, g, state);
  trained.expect(before);
}

INSTANTIATE_TEST_SUITE_P(All, Update, testing::ValuesIn(kOptimizers),
                         [](const auto& tested) { return name_of(tested.param); });

class UpdateOfSgd : public weir::testing::KernelTest {};

TEST_F(UpdateOfSgd, HasTheBitsOfSgdAndOfMomentum) {
  const Array<float> g(random(kCount));
  const Array<float> state(words_of(state_after(1)));
  for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kMomentum}) {
    const TrainedWeights before(optimizer, kCount, 1);
    DeviceWeights trained(before);
    DeviceWeights expected(before);
    update(OptimizerOptions{.optimizer = optimizer, .lr = 0.03, .momentum = 0.8}, trained.view(),
           g.view(), state.view());
    const Weights weights = expected.view();
    if (optimizer == Optimizer::kSgd) {
      sgd(weights.w, g.view(), 0.03F);
    } else {
      sgd_momentum(weights.w, g.view(), weights.first, 0.03F, 0.8F);
    }
    trained.expect(expected.values());
  }
}

class UpdateRows : public Update {
 protected:
  TrainedWeights rows_updated(const TrainedWeights& before, const LayerBatch& batch,
                              const StepState& state, UpdatedRows rows, Offsets offsets = {}) {
    DeviceWeights weights(before, offsets);
    const DeviceColumns x(batch.x);
    update_rows(options_, weights.view(), batch.shape, x.view(),
                Array<float>(batch.dy, offsets.floats).view(), Array<float>(words_of(state)).view(),
                rows);
    return weights.values();
  }
};

/// X^T dy, each element added up in the order of the rows.
std::vector<float> whole_gradient(const LayerBatch& batch) {
  const std::size_t n = batch.shape.n;
  std::vector<float> whole(batch.shape.k * n);
  for (std::size_t t = 0; t < batch.x.touched.size(); ++t) {
    for (std::uint32_t e = batch.x.starts[t]; e < batch.x.starts[t + 1]; ++e) {
      for (std::size_t j = 0; j < n; ++j) {
        whole[batch.x.touched[t] * n + j] += batch.x.values[e] * batch.dy[batch.x.rows[e] * n + j];
      }
    }
  }
  return whole;
}

TEST_P(UpdateRows, HaveTheBitsOfTheGradientAndThenTheUpdateInAllRowsOrTheTouched) {
  for (const LayerSize& size : kLayerSizes) {
    SCOPED_TRACE(weir::testing::sizes({size.x.rows, size.x.columns, size.n}));
    TrainedWeights weights(GetParam(), size.x.columns * size.n, fresh_seed(), true);
    for (std::uint32_t t = 1; t <= 3; ++t) {
      const LayerBatch batch(size.x, size.n, static_cast<std::uint32_t>(fresh_seed()) + t);
      const StepState state = state_after(static_cast<int>(t), 4);
      TrainedWeights all = weights;
      weir::update(options_, all.view(), whole_gradient(batch), words_of(state));
      const std::set<std::uint32_t> touched(batch.x.touched.begin(), batch.x.touched.end());
      TrainedWeights some = weights;
      for (std::size_t i = 0; i < some.w.size(); ++i) {
        if (!touched.contains(static_cast<std::uint32_t>(i / size.n))) continue;
        some.w[i] = all.w[i];
        some.copy[i] = all.copy[i];
        if (!some.first.empty()) some.first[i] = all.first[i];
        if (!some.second.empty()) some.second[i] = all.second[i];
      }
      for (const Offsets offsets : {Offsets{0, 0}, Offsets{0, 1}, Offsets{1, 0}}) {
        // Without moments an untouched row rests, and its copy is not written.
        const TrainedWeights& expected = GetParam() == Optimizer::kSgd ? some : all;
        ASSERT_EQ(rows_updated(weights, batch, state, UpdatedRows::kAll, offsets), expected) << t;
        ASSERT_EQ(rows_updated(weights, batch, state, UpdatedRows::kTouched, offsets), some) << t;
      }
      weights = all;
    }
  }
}

// What makes the two different results.
TEST_P(UpdateRows, OfAllLetAnUntouchedRowMoveOnByItsMoments) {
  const LayerBatch batch({4, 3, 0}, 2, 1);
  const TrainedWeights before(GetParam(), 6, 1);
  const TrainedWeights trained = rows_updated(before, batch, state_after(1), UpdatedRows::kAll);
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

TEST_P(UpdateRows, OfSizesThatDoNotFitAreRefusedAndNothingChanges) {
  const LayerBatch batch({5, 6, 1000}, 3, 1);
  const TrainedWeights before(GetParam(), 18, 1);
  DeviceWeights trained(before);
  const DeviceColumns columns(batch.x);
  const Array<float> output(batch.dy);
  const Array<float> words(words_of(state_after(1)));
  const auto refused = [&](DenseShape shape, const CsrColumns& x, auto dy, auto state) {
    EXPECT_THROW(update_rows(options_, trained.view(), shape, x, dy, state, UpdatedRows::kAll),
                 UsageError);
  };
  const CsrColumns x = columns.view();
  CsrColumns few_starts = x;
  few_starts.starts = x.starts.first(6);
  CsrColumns few_values = x;
  few_values.values = x.values.first(29);
  const auto dy = output.view();
  const auto state = words.view();
  refused({5, 7, 3}, x, dy, state);
  refused({4, 6, 3}, x, dy, state);
  refused(batch.shape, x, dy.first(14), state);
  refused(batch.shape, few_starts, dy, state);
  refused(batch.shape, few_values, dy, state);
  refused(batch.shape, x, dy, state.first(15));
  trained.expect(before);
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRows, testing::ValuesIn(kOptimizers),
                         [](const auto& tested) { return name_of(tested.param); });

}  // namespace
