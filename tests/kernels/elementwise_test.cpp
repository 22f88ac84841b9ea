// Operations on each element alone, and sums.

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>

#include "tests/kernels/device.hpp"

namespace {

using weir::UsageError;
using weir::reference::Bounded;
using weir::reference::kNan;
using weir::reference::kUnitRoundoff;
using weir::reference::rounded;
using weir::testing::Array;
using weir::testing::expect_same_bits;
using weir::testing::expect_within;
using weir::testing::Extent;
using weir::testing::for_each_extent;
using weir::testing::fresh_seed;

constexpr float kAlpha = -1.3F;
constexpr float kRate = 0.03F;
constexpr float kMomentum = 0.9F;

float product(float a, float b) { return rounded(static_cast<double>(a) * static_cast<double>(b)); }
float total_of(float a, float b) {
  return rounded(static_cast<double>(a) + static_cast<double>(b));
}

/// out[i] = change(i).
template <typename Change>
std::vector<float> each(std::size_t size, const Change& change) {
  std::vector<float> all(size);
  for (std::size_t i = 0; i < size; ++i) all[i] = change(i);
  return all;
}

class Elementwise : public weir::testing::KernelTest {};

TEST_F(Elementwise, FillWritesEveryElementAndNothingElse) {
  for_each_extent([&](Extent extent) {
    const float value = random(1)[0];
    Array<float> out(extent.size, extent.offset);
    fill(out.span(), value);
    expect_same_bits(out.values(), std::vector<float>(extent.size, value));
  });
}

TEST_F(Elementwise, AddAndScaleRoundEachProductAndEachSumOnce) {
  for_each_extent([&](Extent extent) {
    const std::vector<float> x = random(extent.size);
    const std::vector<float> y = random(extent.size);
    const Array<float> in(x, extent.offset);
    Array<float> out(y, extent.offset);
    add(in.view(), out.span());
    expect_same_bits(out.values(),
                     each(x.size(), [&](std::size_t i) { return total_of(y[i], x[i]); }));
    out.assign(y);
    scale(kAlpha, out.span());
    expect_same_bits(out.values(),
                     each(x.size(), [&](std::size_t i) { return product(kAlpha, y[i]); }));
    expect_same_bits(in.values(), x);
  });
}

TEST_F(Elementwise, SpansThatReachABoundaryAtDifferentElementsGiveTheSameBits) {
  for (const std::size_t size : {5U, 1025U}) {
    for (std::size_t at = 0; at < 16; ++at) {
      const std::vector<float> x = random(size);
      const std::vector<float> y = random(size);
      const Array<float> in(x, at % 4);
      Array<float> out(y, at / 4);
      add(in.view(), out.span());
      expect_same_bits(out.values(),
                       each(size, [&](std::size_t i) { return total_of(y[i], x[i]); }));
    }
  }
}

TEST_F(Elementwise, AnInputMayBeTheOutputItself) {
  for (const Extent extent : {Extent{5, 1}, Extent{1025, 0}}) {
    const std::vector<float> before = random(extent.size);
    Array<float> x(before, extent.offset);
    add(x.view(), x.span());
    expect_same_bits(x.values(), each(before.size(), [&](std::size_t i) { return 2 * before[i]; }));
  }
}

TEST_F(Elementwise, SizesThatDifferAreRefusedAndNothingChanges) {
  const std::vector<float> before = random(8);
  const Array<float> x(before);
  Array<float> y(before);
  Array<float> v(before);
  const auto seven = x.view().first(7);
  EXPECT_THROW(add(seven, y.span()), UsageError);
  EXPECT_THROW(sgd(y.span(), seven, kRate), UsageError);
  EXPECT_THROW(sgd_momentum(y.span(), seven, v.span(), kRate, kMomentum), UsageError);
  EXPECT_THROW(sgd_momentum(y.span(), x.view(), v.span().first(7), kRate, kMomentum), UsageError);
  expect_same_bits(y.values(), before);
  expect_same_bits(v.values(), before);
}

class Sgd : public weir::testing::KernelTest {};

TEST_F(Sgd, StepsAgainstTheGradientRoundingEachOperationOnce) {
  for_each_extent([&](Extent extent) {
    const std::vector<float> before = random(extent.size);
    const std::vector<float> g = random(extent.size);
    Array<float> w(before, extent.offset);
    sgd(w.span(), Array<float>(g, extent.offset).view(), kRate);
    expect_same_bits(w.values(), each(g.size(), [&](std::size_t i) {
                       return total_of(before[i], -product(kRate, g[i]));
                     }));
  });
}

TEST_F(Sgd, MomentumStepsByTheDecayedSumOfGradients) {
  for_each_extent([&](Extent extent) {
    const std::vector<float> before = random(extent.size);
    const std::vector<float> v_before = random(extent.size);
    const std::vector<float> g = random(extent.size);
    Array<float> w(before, extent.offset);
    Array<float> v(v_before, extent.offset);
    sgd_momentum(w.span(), Array<float>(g, extent.offset).view(), v.span(), kRate, kMomentum);
    const std::vector<float> velocity = each(
        g.size(), [&](std::size_t i) { return total_of(product(kMomentum, v_before[i]), g[i]); });
    expect_same_bits(v.values(), velocity);
    expect_same_bits(w.values(), each(g.size(), [&](std::size_t i) {
                       return total_of(before[i], -product(kRate, velocity[i]));
                     }));
  });
}

// Three steps by hand: v = 1, 1.5, 1.75 and the rate changes before the last.
TEST_F(Sgd, AppliesANewRateToTheWholeVelocityAsPyTorchDoes) {
  Array<float> w(std::vector<float>{0});
  Array<float> v(std::vector<float>{0});
  const Array<float> g(std::vector<float>{1});
  for (const auto& [rate, expected] : {std::pair{1.0F, -1.0F}, {1.0F, -2.5F}, {2.0F, -6.0F}}) {
    sgd_momentum(w.span(), g.view(), v.span(), rate, 0.5F);
    EXPECT_EQ(w.front(), expected);
  }
}

class FillNormal : public weir::testing::KernelTest {};

/// Number `index` of a stream by Box and Muller's formula in double; same_bits_test.cpp has the
/// bound.
Bounded reference_number(std::uint64_t stream, std::uint64_t index) {
  const weir::PhiloxWords words = weir::normal_words(fresh_seed(), stream, index / 4);
  const bool back = index % 4 >= 2;
  const auto u = static_cast<double>(weir::unit_of_word(back ? words.z : words.x));
  const double r = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * 0x1p-32 * (back ? words.w : words.y);
  return {r * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)), 3e-7 * r};
}

/// The same by normal_block, to the bit.
float block_number(std::uint64_t stream, std::uint64_t index) {
  const weir::NormalBlock drawn = weir::normal_block(fresh_seed(), stream, index / 4);
  const weir::FloatPair pair = index % 4 >= 2 ? drawn.back : drawn.front;
  return index % 2 == 0 ? pair.first : pair.second;
}

TEST_F(FillNormal, DrawsTheNumbersOfTheirBlocksFromEveryFirstIndex) {
  std::uint64_t random_stream = 0;
  for_each_extent([&](Extent extent) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6},
                                      std::uint64_t{UINT32_MAX} * 4 + 3}) {
      if (extent.size > 1025 && first % 4 == 2) continue;
      SCOPED_TRACE(first);
      ++random_stream;
      Array<float> out(extent.size, extent.offset);
      fill_normal(fresh_seed(), random_stream, out.span(), first);
      const std::vector<float> found = out.values();
      if (extent.size > 1025) {  // random_test.cpp has the hash of a million of them
        std::vector<float> expected(extent.size);
        weir::fill_normal(fresh_seed(), random_stream, expected, first);
        expect_same_bits(found, expected);
        continue;
      }
      expect_same_bits(found, each(found.size(), [&](std::size_t i) {
                         return block_number(random_stream, first + i);
                       }));
      expect_within(found,
                    [&](std::size_t i) { return reference_number(random_stream, first + i); });
    }
  });
}

TEST_F(FillNormal, DrawsTheLastNumbersOfAStreamAndRefusesToPassItsEnd) {
  constexpr std::uint64_t kFirst = UINT64_MAX - 7;
  Array<float> out(8);
  fill_normal(fresh_seed(), 1U, out.span().first(7), kFirst);
  const std::vector<float> expected =
      each(8, [&](std::size_t i) { return i < 7 ? block_number(1, kFirst + i) : kNan; });
  expect_same_bits(out.values(), expected);
  EXPECT_THROW(fill_normal(fresh_seed(), 2U, out.span(), kFirst), UsageError);
  expect_same_bits(out.values(), expected);
}

static_assert(weir::kSumLanes == 32 && weir::kSumTile == 1024, "the stated error is for these");

/// The order of reduce.hpp, pass by pass, with every tile filled up with zeros.
float sum_as_written(std::vector<float> terms) {
  do {
    std::vector<float> sums;
    for (std::size_t begin = 0; begin < terms.size(); begin += weir::kSumTile) {
      std::array<float, weir::kSumLanes> lane{};
      const std::size_t end = std::min(terms.size(), begin + weir::kSumTile);
      for (std::size_t i = begin; i < end; ++i) lane[(i - begin) % lane.size()] += terms[i];
      for (std::size_t half = lane.size() / 2; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
      }
      sums.push_back(lane[0]);
    }
    terms = sums;
  } while (terms.size() > 1);
  return terms.empty() ? 0.0F : terms[0];
}

class Sums : public weir::testing::KernelTest {
 protected:
  float sum_of(const std::vector<float>& x, std::size_t offset = 0) {
    Array<float> total(1);
    const Array<float> in(x, offset);
    sum(in.view(), total.span());
    expect_same_bits(in.values(), x);
    return total.front();
  }
};

TEST_F(Sums, AreAddedInTheOrderThatIsWrittenAndErrWithinTheirBound) {
  for_each_extent([&](Extent extent) {
    const std::vector<float> x = random(extent.size);
    const float found = sum_of(x, extent.offset);
    EXPECT_EQ(found, sum_as_written(x));
    EXPECT_EQ(sum_of(x), found) << "another alignment";
    Bounded exact;
    const double passes = x.size() <= (1U << 10U) ? 1 : (x.size() <= (1U << 20U) ? 2 : 3);
    for (const float value : x) {
      exact.value += static_cast<double>(value);
      exact.error += std::abs(static_cast<double>(value)) * 1.01 * kUnitRoundoff * 37 * passes;
    }
    EXPECT_NEAR(found, exact.value, exact.error);
    EXPECT_EQ(sum_of(std::vector<float>(x.size(), 1.0F)), static_cast<float>(x.size()));
  });
}

TEST_F(Sums, OfSquaresAreThoseOfTheRoundedSquares) {
  for_each_extent([&](Extent extent) {
    const std::vector<float> x = random(extent.size);
    const std::vector<float> y = random(extent.size);
    Array<float> total(1);
    squared_distance(Array<float>(x, extent.offset).view(), Array<float>(y).view(), total.span());
    EXPECT_EQ(total.front(), sum_as_written(each(x.size(), [&](std::size_t i) {
                const float difference = total_of(x[i], -y[i]);
                return product(difference, difference);
              })));
  });
}

TEST_F(Sums, AreAccurateWhereAPlainLoopIsNot) {
  const std::vector<float> x(std::size_t{1} << 22U, 0.1F);
  const double exact = static_cast<double>(x.size()) * static_cast<double>(0.1F);
  float plain = 0;
  for (const float value : x) plain += value;
  EXPECT_GT(std::abs(static_cast<double>(plain) - exact), 1e-3 * exact);
  EXPECT_NEAR(sum_of(x), exact, 1e-6 * exact);
}

TEST_F(Sums, HaveTheSameBitsEachTime) {
  const std::vector<float> x = random(100003);
  const float first = sum_of(x);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(sum_of(x), first);
}

TEST_F(Sums, KeepNanAndInfinity) {
  std::vector<float> x = random(3000);
  x[2999] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of(x), std::numeric_limits<float>::infinity());
  x[1] = kNan;
  EXPECT_TRUE(std::isnan(sum_of(x)));
}

TEST_F(Sums, OfSizesThatDifferAreRefused) {
  const Array<float> x(random(8));
  Array<float> total(1);
  EXPECT_THROW(squared_distance(x.view(), x.view().first(7), total.span()), UsageError);
  EXPECT_TRUE(total.is_unwritten());
}

class L2Loss : public weir::testing::KernelTest {};

TEST_F(L2Loss, OfSmallNumbersIsWhatTheFormulaGives) {
  const Array<float> p(std::vector<float>{1.0F, 2.0F, 5.0F, 0.0F});
  const Array<float> t(std::vector<float>{0.0F, 2.0F, 2.0F, -2.0F});
  Array<float> loss(1);
  Array<float> dp(4);
  l2_loss(p.view(), t.view(), loss.span());
  l2_loss_gradient(p.view(), t.view(), dp.span());
  EXPECT_EQ(loss.front(), 1.75F);  // (1 + 0 + 9 + 4) / (2 * 4)
  EXPECT_EQ(dp.values(), (std::vector<float>{0.25F, 0.0F, 0.75F, 0.5F}));
}

TEST_F(L2Loss, IsHalfTheMeanSquareAndItsGradientTheDifferenceOverTheCountAlsoInPlace) {
  for_each_extent([&](Extent extent) {
    if (extent.size == 0) return;
    const std::vector<float> p = random(extent.size);
    const std::vector<float> t = random(extent.size);
    Array<float> prediction(p, extent.offset);
    const Array<float> target(t, extent.offset);
    Array<float> loss(1);
    l2_loss(prediction.view(), target.view(), loss.span());
    const auto m = static_cast<float>(p.size());
    const std::vector<float> difference =
        each(p.size(), [&](std::size_t i) { return total_of(p[i], -t[i]); });
    EXPECT_EQ(loss.front(),
              0.5F * (sum_as_written(each(
                          p.size(),
                          [&](std::size_t i) { return product(difference[i], difference[i]); })) /
                      m));
    double exact = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      exact += std::pow(static_cast<double>(p[i]) - static_cast<double>(t[i]), 2);
    }
    exact /= 2 * static_cast<double>(p.size());
    // At most 3 * 37 roundings of the sum, 3 of a term, and those of the count and the division.
    EXPECT_NEAR(loss.front(), exact, 117 * kUnitRoundoff * exact);
    const std::vector<float> slopes = each(p.size(), [&](std::size_t i) {
      return rounded(static_cast<double>(difference[i]) / static_cast<double>(m));
    });
    Array<float> dp(p.size(), extent.offset);
    l2_loss_gradient(prediction.view(), target.view(), dp.span());
    expect_same_bits(dp.values(), slopes);
    l2_loss_gradient(prediction.view(), target.view(), prediction.span());
    expect_same_bits(prediction.values(), slopes);
  });
}

TEST_F(L2Loss, OfSizesThatDoNotFitIsRefusedAndNothingChanges) {
  const Array<float> p(random(8));
  const Array<float> none(0);
  Array<float> out(8);
  const auto one = out.span().first(1);
  EXPECT_THROW(l2_loss(none.view(), none.view(), one), UsageError);
  EXPECT_THROW(l2_loss(p.view(), p.view().first(7), one), UsageError);
  EXPECT_THROW(l2_loss(p.view(), p.view(), out.span()), UsageError);
  EXPECT_THROW(l2_loss_gradient(none.view(), none.view(), out.span().first(0)), UsageError);
  EXPECT_THROW(l2_loss_gradient(p.view(), p.view().first(7), out.span()), UsageError);
  EXPECT_THROW(l2_loss_gradient(p.view(), p.view(), out.span().first(7)), UsageError);
  EXPECT_TRUE(out.is_unwritten());
}

}  // namespace
