// Compares with what PyTorch's optimizers make of the same gradients: vectors/optimizer.txt, by
// vectors/make_optimizer_vectors.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/optimizer/update.hpp"
#include "tests/kernels/optimizer_reference.hpp"

namespace {

using weir::Optimizer;
using weir::OptimizerOptions;
using weir::StepState;

/// The script's numbers.
class TorchNumbers {
 public:
  explicit TorchNumbers(std::uint32_t seed) : x_(seed) {}

  std::vector<float> weights(std::size_t count) {
    std::vector<float> drawn(count);
    for (float& value : drawn) value = next();
    return drawn;
  }
  std::vector<float> gradients(std::size_t count) {
    std::vector<float> drawn = weights(count);
    for (std::size_t i = 0; i < count; ++i) {
      drawn[i] = next() < -0.6F ? 0.0F : std::ldexp(drawn[i], -static_cast<int>(i % 16));
    }
    return drawn;
  }

 private:
  float next() {
    x_ = 1664525U * x_ + 1013904223U;
    return static_cast<float>(x_ >> 8U) / 0x1p23F - 1;
  }

  std::uint32_t x_;
};

/// A tensor and its scale: the largest number that it held until now.
struct ScaledTensor {
  std::vector<float> values;
  double scale = 0;

  void look() {
    for (const float value : values) {
      scale = std::max(scale, std::abs(static_cast<double>(value)));
    }
  }
  /// The largest difference to the rest of a line, over the scale.
  [[nodiscard]] double difference(std::istream& expected) const {
    double most = 0;
    std::string word;
    for (const float value : values) {
      if (!(expected >> word)) return HUGE_VAL;
      most = std::max(most, std::abs(static_cast<double>(value) - std::stod(word)));
    }
    return expected >> word ? HUGE_VAL : most / scale;
  }
};

/// A run of one case, step by step.
struct TorchCase {
  TorchCase(const std::string& name, std::size_t count, std::uint32_t seed)
      : numbers(seed), w{numbers.weights(count)} {
    options.optimizer = *std::ranges::find_if(weir::reference::kOptimizers, [&](Optimizer one) {
      return weir::reference::name_of(one) == name;
    });
    first.values.resize(weir::moments_of(options.optimizer) > 0 ? count : 0);
    second.values.resize(weir::moments_of(options.optimizer) > 1 ? count : 0);
  }
  void run_to(std::uint32_t step) {
    while (state.steps < step) {
      state = begun(state, options.beta1, options.beta2);
      weir::update(options, {w.values, first.values, second.values, {}},
                   numbers.gradients(w.values.size()), weir::reference::words_of(state));
      for (ScaledTensor* tensor : {&w, &first, &second}) tensor->look();
    }
  }

  OptimizerOptions options;
  TorchNumbers numbers;
  ScaledTensor w;
  ScaledTensor first{};
  ScaledTensor second{};
  StepState state;
};

TEST(OptimizerVectors, OfPyTorchAreMetToAMillionthOver100Steps) {
  std::ifstream file(WEIR_OPTIMIZER_VECTORS);
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  ASSERT_EQ(text.rfind("# PyTorch ", 0), 0U);
  std::vector<TorchCase> cases;
  std::size_t moments = 0;
  double worst = 0;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    std::string word;
    line >> word;
    if (word == "case") {
      std::string name;
      std::size_t count = 0;
      std::uint32_t seed = 0;
      line >> name >> count >> seed;
      TorchCase& added = cases.emplace_back(name, count, seed);
      line >> added.options.lr >> added.options.beta1 >> added.options.beta2 >> added.options.eps;
      ASSERT_TRUE(line) << text;
      added.options.momentum = added.options.beta1;
      moments = 0;
      continue;
    }
    ASSERT_FALSE(cases.empty());
    TorchCase& now = cases.back();
    double found = HUGE_VAL;
    if (word == "w") {
      std::uint32_t step = 0;
      line >> step;
      now.run_to(step);
      found = now.w.difference(line);
    } else {
      ASSERT_EQ(word, "moment");
      found = (++moments == 1 ? now.first : now.second).difference(line);
    }
    EXPECT_LE(found, 1e-6) << "case " << cases.size() << ", " << word << " after step "
                           << now.state.steps;
    worst = std::max(worst, found);
  }
  EXPECT_EQ(cases.size(), 16U);
  EXPECT_EQ(cases.back().state.steps, 100U);
  std::cout << "largest difference over a tensor's scale: " << worst << '\n';
}

}  // namespace
