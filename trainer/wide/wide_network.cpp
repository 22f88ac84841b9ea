#include "trainer/wide/wide_network.hpp"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"

namespace weir {
namespace {

WideOptions checked(WideOptions options) {
  if (options.widths.size() >= 3) return options;
  throw UsageError("a network needs an input, a hidden and an output width");
}

}  // namespace

PackedTensor PlacedLayer::with_labels(PackedTensor batch) {
  batch.label_words = link_.copy_to(rest_, sparse_.labels_alone(batch), "labels");
  return batch;
}

Tensor PlacedLayer::forward(const PackedTensor& batch, const Tensor& w, const Tensor& b) {
  const Tensor h = sparse_.layer(batch, w, b, Activation::kRelu);
  return link_.copy_to(rest_, h, "activations");
}

void PlacedLayer::update(const Parameter& w, const Parameter& b, const PackedTensor& batch,
                         const Tensor& dy, const Tensor& db, const Tensor& state,
                         UpdatedRows rows) {
  // All copies before the first change: no wait for memory can end a step in its middle.
  const Tensor dy_here = fetch(dy, "activation gradients");
  const Tensor db_here = fetch(db, "b0 gradient");
  optimizer_.follow(fetch(state, "optimizer state"));
  optimizer_.update_rows(w, batch, dy_here, rows);
  optimizer_.update(b, db_here);
}

std::uint64_t parameter_count(const std::vector<std::size_t>& widths) noexcept {
  std::uint64_t count = 0;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) count += (widths[l] + 1) * widths[l + 1];
  return count;
}

WideNetwork::WideNetwork(Operations& operations, WideOptions options, PlacedLayer* first)
    : operations_(operations),
      first_(first),
      sparse_(operations),
      options_(checked(std::move(options))),
      exchange_(operations, options_.ranks, options_.widths, options_.batch_rows),
      mixed_(operations, options_.precision),
      optimizer_(operations, options_.optimizer, scales() ? LossScaling{} : kNoLossScaling) {
  const std::vector<std::size_t>& widths = options_.widths;
  for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
    const std::string w = "w" + std::to_string(l);
    const std::string b = "b" + std::to_string(l);
    const bool elsewhere = l == 0 && first_ != nullptr;
    Operations& there = elsewhere ? first_->operations() : operations;
    OptimizerOperations& optimizer = elsewhere ? first_->optimizer() : optimizer_;
    parameters_.push_back(optimizer.parameter(w, draw_weights(there, l, w)));
    const Shape shape = parameters_.back().value.shape();
    const Shape row{shape[1]};
    if (l != 0) mixed_.add_copy(parameters_.back());
    parameters_.push_back(optimizer.parameter(b, there.filled(row, 0, b)));
    gradients_.push_back(l == 0 ? Tensor{} : operations.filled(shape, 0, w + " gradient"));
    gradients_.push_back(operations.filled(row, 0, b + " gradient"));
  }
  if (exchange_.shares(Parallel::kModel)) no_bias_ = operations.filled({widths[1]}, 0, "no bias");
}

Tensor WideNetwork::draw_weights(Operations& there, std::size_t l, const std::string& name) {
  const std::vector<std::size_t>& widths = options_.widths;
  const Shard all_columns{.first = 0, .count = widths[l + 1]};
  const Shard all_rows{.first = 0, .count = widths[l]};
  const Shard rows = l == 0 ? options_.ranks.part_of(widths[l]) : all_rows;
  const Shard columns =
      l + 2 == widths.size() ? options_.ranks.part_of(widths[l + 1]) : all_columns;
  const float deviation =
      l == 0 ? options_.first_deviation : std::sqrt(2.0F / static_cast<float>(widths[l]));
  const NormalDraw draw{.seed = options_.seed,
                        .sequence = l,
                        .deviation = deviation,
                        .first = rows.first * widths[l + 1] + columns.first};
  const Shape shape{rows.count, columns.count};
  if (columns.count == widths[l + 1]) return there.drawn(shape, draw, name);
  Tensor weights = operations_.empty(shape, name);
  operations_.submit("draw columns", {.writes = {weights}},
                     [draw, rows = rows.count, own = columns.count, all = widths[l + 1]](
                         Maths& m, Stream& s, Inputs, Outputs out) {
                       NormalDraw line = draw;
                       for (std::size_t r = 0; r < rows; ++r, line.first += all) {
                         m.fill_normal(s, line, out[0].subspan(r * own, own));
                       }
                     });
  return weights;
}

void WideNetwork::refresh_copies() {
  for (Parameter& parameter : parameters_) {
    if (parameter.words) mixed_.add_copy(parameter);
  }
}

Tensor WideNetwork::sparse_layer(const PackedTensor& batch) {
  if (first_ != nullptr) return first_->forward(batch, parameters_[0].value, bias(0));
  return sparse_.layer(batch, parameters_[0].value, bias(0), Activation::kRelu);
}

Tensor WideNetwork::dense(std::size_t l, const Factor& x) {
  return mixed_.dense(x, weights(l), bias(l),
                      l + 1 < layers() ? Activation::kRelu : Activation::kNone);
}

Tensor WideNetwork::first_layer(const PackedTensor& batch) {
  if (!exchange_.shares(Parallel::kModel)) return sparse_layer(batch);
  // Of this rank's inputs.
  Tensor h = sparse_.layer(batch, parameters_[0].value, no_bias_, Activation::kNone);
  exchange_.add_up(std::array{h});
  operations_.bias_activation(bias(0), h, Activation::kRelu);
  return h;
}

Tensor WideNetwork::hits(const Tensor& logits, const PackedTensor& batch) {
  return exchange_.shares(Parallel::kModel) ? exchange_.hits(logits, batch)
                                            : sparse_.hits(logits, batch);
}

void WideNetwork::add_up_rows(std::span<const Tensor> figures) {
  if (exchange_.shares(Parallel::kData)) exchange_.add_up(figures);
}

WideNetwork::Tape WideNetwork::forward(const PackedTensor& batch) {
  Tape tape{mixed_.factor(first_layer(batch))};
  for (std::size_t l = 1; l + 1 < layers(); ++l) {
    tape.push_back(mixed_.factor(dense(l, tape.back())));
  }
  tape.push_back({dense(layers() - 1, tape.back()), {}});  // the logits are no factor
  return tape;
}

Tensor WideNetwork::infer(const PackedTensor& batch) {
  Tensor h = first_layer(batch);
  for (std::size_t l = 1; l < layers(); ++l) h = dense(l, mixed_.factor(std::move(h)));
  return h;
}

// An infinity in the 16-bit copy of a gradient reaches the gradient at the layer's input, before
// its mask: there it is looked for, since that tensor is small.
Tensor WideNetwork::backward(Tape tape) {
  Tensor dy = std::move(tape.back().values);
  Factor factor = scales() ? mixed_.scaled_factor(dy, step_state()) : mixed_.factor(dy);
  operations_.bias_gradient(dy, gradients_.back());
  exchange_.reduce(gradients_.back());
  for (std::size_t l = layers() - 1; l > 0; --l) {
    tape.pop_back();  // nothing needs the layer's output any more
    mixed_.weight_gradient(tape.back(), factor, gradients_[2 * l]);
    exchange_.reduce(gradients_[2 * l]);
    dy = mixed_.input_gradient(factor, weights(l));
    const bool partial = l + 1 == layers() && exchange_.shares(Parallel::kModel);
    if (partial) exchange_.add_up(std::array{dy});
    if (scales() && !exchange_.shares(Parallel::kData)) mixed_.flag_not_finite(dy, step_state());
    operations_.relu_and_bias_gradient(tape.back().values, dy, gradients_[2 * l - 1]);
    exchange_.reduce(gradients_[2 * l - 1]);
    factor = l > 1 ? mixed_.factor(dy) : Factor{};
  }
  return dy;
}

void WideNetwork::update_first(const PackedTensor& batch, const Tensor& dy) {
  if (first_ != nullptr) {
    return first_->update(parameters_[0], parameters_[1], batch, dy, gradients_[1], step_state(),
                          options_.rows);
  }
  optimizer_.update_rows(parameters_[0], batch, dy, options_.rows);
  optimizer_.update(parameters_[1], gradients_[1]);
}

Tensor WideNetwork::step(const PackedTensor& batch, Tape tape) {
  const Tensor& logits = tape.back().values;
  Tensor loss = exchange_.shares(Parallel::kModel)
                    ? exchange_.loss_and_gradient(options_.loss, logits, batch)
                    : sparse_.loss_and_gradient(options_.loss, logits, batch);
  Tensor dy = backward(std::move(tape));
  if (exchange_.shares(Parallel::kData)) {
    dy = exchange_.all_rows(dy, batch);
    for (std::size_t l = 1; scales() && l < layers(); ++l) {
      exchange_.flag_overflow(gradients_[2 * l], step_state());
    }
  }
  optimizer_.begin();
  update_first(batch, dy);
  for (std::size_t i = 2; i < parameters_.size(); ++i) {
    optimizer_.update(parameters_[i], gradients_[i]);
  }
  optimizer_.end();
  return loss;
}

}  // namespace weir
