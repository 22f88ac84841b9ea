#include "trainer/model/optimizer_operations.hpp"

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "trainer/model/maths.hpp"

namespace weir {
namespace {

/// A parameter as an operation's first outputs.
class Written {
 public:
  explicit Written(const Parameter& parameter)
      : tensors_{parameter.value},
        kind_(parameter.kind),
        moments_(parameter.second  ? 2U
                 : parameter.first ? 1U
                                   : 0U),
        copied_(static_cast<bool>(parameter.words)) {
    if (moments_ > 0) tensors_.push_back(parameter.first);
    if (moments_ > 1) tensors_.push_back(parameter.second);
    if (copied_) tensors_.push_back(parameter.words);
  }
  [[nodiscard]] const std::vector<Tensor>& tensors() const noexcept { return tensors_; }
  /// Returns `others`, then the tensors.
  [[nodiscard]] std::vector<Tensor> after(std::vector<Tensor> others) const {
    others.insert(others.end(), tensors_.begin(), tensors_.end());
    return others;
  }

  /// What a closure needs to find the parameter among its outputs.
  struct Views {
    HalfKind kind;
    std::uint8_t moments;
    bool copied;

    [[nodiscard]] Weights of(const Outputs& out) const {
      Weights weights;
      weights.w = out[0];
      if (moments > 0) weights.first = out[1];
      if (moments > 1) weights.second = out[2];
      if (copied) weights.copy = {half_words(out[moments + 1U], out[0].size()), kind};
      return weights;
    }
  };
  [[nodiscard]] Views views() const noexcept { return {kind_, moments_, copied_}; }

 private:
  std::vector<Tensor> tensors_;
  HalfKind kind_;
  std::uint8_t moments_;
  bool copied_;
};

}  // namespace

OptimizerOperations::OptimizerOperations(Operations& operations, const OptimizerOptions& options,
                                         const LossScaling& scaling)
    : operations_(operations), options_(options), scaling_(scaling) {
  std::array<float, kStepStateWords> words{};
  store_step_state(initial_step_state(scaling), words);
  state_ = operations.scheduler().copy_in(words, {kStepStateWords}, "optimizer state");
}

Parameter OptimizerOperations::parameter(std::string name, Tensor value) {
  const std::size_t moments = moments_of(options_.optimizer);
  Parameter parameter{.name = std::move(name), .value = std::move(value)};
  const Shape& shape = parameter.value.shape();
  if (moments > 0) parameter.first = operations_.filled(shape, 0, parameter.name + " moment 1");
  if (moments > 1) parameter.second = operations_.filled(shape, 0, parameter.name + " moment 2");
  return parameter;
}

void OptimizerOperations::begin() {
  operations_.submit("begin step", {.reads = {state_}, .writes = {state_}},
                     [options = options_](Maths& m, Stream& s, Inputs, Outputs out) {
                       m.begin_step(s, options, out[0]);
                     });
}

void OptimizerOperations::end() {
  operations_.submit("end step", {.reads = {state_}, .writes = {state_}},
                     [scaling = scaling_](Maths& m, Stream& s, Inputs, Outputs out) {
                       m.end_step(s, scaling, out[0]);
                     });
}

void OptimizerOperations::update(const Parameter& parameter, const Tensor& gradient) {
  const Written written(parameter);
  operations_.submit(
      "update", {.reads = written.after({gradient, state_}), .writes = written.tensors()},
      [options = options_, views = written.views()](Maths& m, Stream& s, Inputs in, Outputs out) {
        m.update(s, options, views.of(out), in[0], in[1]);
      });
}

void OptimizerOperations::update_rows(const Parameter& parameter, const PackedTensor& batch,
                                      const Tensor& dy, UpdatedRows rows) {
  const Written written(parameter);
  const DenseShape shape{.m = batch.sizes.rows, .k = batch.widths.columns, .n = dy.shape()[1]};
  operations_.submit(
      "update rows",
      {.reads = written.after({dy, state_, batch.words}), .writes = written.tensors()},
      [options = options_, views = written.views(), sizes = batch.sizes, shape, rows](
          Maths& m, Stream& s, Inputs in, Outputs out) {
        const SparseBatch x = unpack(in[2], sizes, {.columns = shape.k, .classes = 0});
        m.update_rows(s, options, views.of(out), shape, x.columns, in[0], in[1], rows);
      },
      {static_cast<double>(batch.sizes.rows), static_cast<double>(batch.sizes.entries),
       static_cast<double>(batch.sizes.touched), static_cast<double>(batch.sizes.labels)});
}

}  // namespace weir
