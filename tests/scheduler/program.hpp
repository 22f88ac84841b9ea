#pragma once

// A small training loop over three streams with a known result, to the bit. It must not depend on
// the scheduler, the pool or a fault on the way.

#include <cstdint>
#include <vector>

#include "rig.hpp"

namespace weir::testing {

class Program {
 public:
  static constexpr std::size_t kElements = 4096;  // 16 KiB, a block of its own
  /// The least budget in which it runs when frees are awaited: five tensors of 16 KiB at once, one
  /// of them awaiting, and a slab of small tensors.
  static constexpr Bytes kLeastBudget = kib(64 + 5 * 16);

  explicit Program(std::size_t steps) : inputs_(steps, std::vector<float>(kElements)) {
    std::uint32_t state = 1;
    for (auto& input : inputs_) {
      for (float& element : input) {
        state = state * 1664525 + 1013904223;
        element = static_cast<float>(state >> 8U) * 0x1p-24F;
      }
    }
  }

  /// Returns weights and losses after all steps. This object's inputs outlive every copy.
  [[nodiscard]] std::vector<float> run(Scheduler& scheduler) const {
    const Tensor weights = scheduler.empty({kElements}, "weights");
    scheduler.submit("init", {.writes = {weights}}, fill(0.5F));
    std::vector<Tensor> losses;
    for (const auto& input : inputs_) {
      const Batch batch = scheduler.begin_batch("step");
      losses.push_back(step(scheduler, weights, input));
    }
    std::vector<float> result = scheduler.read(weights);
    for (const Tensor& loss : losses) result.push_back(scheduler.read(loss).front());
    return result;
  }

  /// The same, as one loop on the host.
  [[nodiscard]] std::vector<float> expected() const {
    std::vector<float> w(kElements, 0.5F);
    std::vector<float> losses;
    for (const auto& x : inputs_) {
      std::vector<float> y(kElements);
      std::vector<float> g(kElements);
      float loss = 0;
      multiply(y, x, w);
      gradient(g, y, x);
      for (const float element : y) loss += element;
      update(w, w, g);
      losses.push_back(loss);
    }
    w.insert(w.end(), losses.begin(), losses.end());
    return w;
  }

 private:
  // A multiplication by a power of two is exact, so a fused multiply-add changes no bit.
  template <typename Out, typename X, typename W>
  static void multiply(Out&& y, const X& x, const W& w) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * w[i];
  }
  template <typename Out, typename Y, typename X>
  static void gradient(Out&& g, const Y& y, const X& x) {
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = y[i] + x[i];
  }
  template <typename Out, typename W, typename G>
  static void update(Out&& to, const W& w, const G& g) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = w[i] - g[i] * 0.0625F;
  }

  [[nodiscard]] static Tensor step(Scheduler& s, const Tensor& weights,
                                   const std::vector<float>& input) {
    const Tensor x = s.copy_in(input, {kElements}, "x");
    const Tensor y = s.empty({kElements}, "y");
    s.submit("forward", {.reads = {x, weights}, .writes = {y}},
             [](Stream&, Inputs in, Outputs out) { multiply(out[0], in[0], in[1]); });
    const Tensor g = s.empty({kElements}, "g");
    s.submit("backward", {.reads = {y, x}, .writes = {g}, .stream = StreamRole::kCompute2},
             [](Stream&, Inputs in, Outputs out) { gradient(out[0], in[0], in[1]); });
    Tensor loss = s.empty({1}, "loss");
    s.submit("loss", {.reads = {y}, .writes = {loss}, .stream = StreamRole::kCompute2},
             [](Stream&, Inputs in, Outputs out) {
               float sum = 0;
               for (const float element : in[0]) sum += element;
               out[0][0] = sum;
             });
    s.submit("update", {.reads = {weights, g}, .writes = {weights}},
             [](Stream&, Inputs in, Outputs out) { update(out[0], in[0], in[1]); });
    return loss;
  }

  std::vector<std::vector<float>> inputs_;
};

}  // namespace weir::testing
