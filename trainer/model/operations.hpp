#pragma once

// The maths of a model as operations on a scheduler: every method submits and returns without
// waiting. See maths.inc for what each operation computes. One thread at a time.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "scheduler/scheduler.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/maths.hpp"

namespace weir {

// Where the operations of a model are submitted: to the scheduler at once, or to a collector that
// submits a whole batch as one. Everything that a model computes goes through here, so that a batch
// can be collected; what brings its inputs goes to the scheduler. One thread at a time.

/// The numbers in a closure that may differ from batch to batch, such as a learning rate. What is
/// captured once and replayed compares them, and captures again if one has changed. Shapes, and
/// what never changes in a run, need not be told. Valid during the call.
using Constants = std::initializer_list<double>;

/// Receives operations in the scheduler's stead.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;
  /// Takes over what Submitter::submit was given.
  virtual void collect(std::string_view name, const Uses& uses, Kernel&& kernel,
                       Constants constants, CallSite where) = 0;
};

class Submitter {
 public:
  /// `scheduler` must outlive it.
  explicit Submitter(Scheduler& scheduler) noexcept : scheduler_(scheduler) {}

  [[nodiscard]] Scheduler& scheduler() const noexcept { return scheduler_; }

  /// As Scheduler::empty.
  [[nodiscard]] Tensor empty(const Shape& shape, std::string_view label = {}) const {
    return scheduler_.empty(shape, label);
  }
  /// As Scheduler::submit. While a batch is collected it is submitted at the batch's end: until
  /// then nobody may wait for what it writes, or use that outside this submitter.
  void submit(std::string_view name, const Uses& uses, Kernel kernel, Constants constants = {},
              CallSite where = CallSite::here()) {
    if (collector_ == nullptr) return scheduler_.submit(name, uses, std::move(kernel), where);
    scheduler_.require_here(name, uses);  // later the message would name the whole batch
    collector_->collect(name, uses, std::move(kernel), constants, where);
  }

  /// Sends operations to `collector` from now on, or to the scheduler again if that is null.
  void collect_in(Collector* collector) noexcept { collector_ = collector; }

 private:
  Scheduler& scheduler_;
  Collector* collector_ = nullptr;
};

/// A workspace, or empty.
using Scratch = std::span<float>;

class Operations {
 public:
  /// Allocates the workspace that the maths needs, if any: one tensor of the scheduler's pool, and
  /// so of the budget. Every operation that needs it writes it. Both must outlive what is
  /// submitted. Throws OutOfMemory if the workspace does not fit.
  Operations(Scheduler& scheduler, Maths& maths);

  [[nodiscard]] Scheduler& scheduler() const noexcept { return submitter_.scheduler(); }
  /// Where its operations go; more operations on the same tensors are submitted there too.
  [[nodiscard]] Submitter& submitter() noexcept { return submitter_; }

  /// As Submitter::empty.
  [[nodiscard]] Tensor empty(const Shape& shape, std::string_view label) const {
    return submitter_.empty(shape, label);
  }
  /// Submits `work(maths, stream, in, out)`, which enqueues functions of the maths.
  template <typename Work>
  void submit(std::string_view name, const Uses& uses, Work work, Constants constants = {},
              CallSite where = CallSite::here()) {
    submitter_.submit(
        name, uses,
        [maths = &maths_, work](Stream& s, Inputs in, Outputs out) { work(*maths, s, in, out); },
        constants, where);
  }
  /// The same for functions that need a workspace: `work(maths, stream, in, out, workspace)`. It
  /// writes at most kMostWrites tensors.
  template <typename Work>
  void submit_scratch(std::string_view name, const Uses& uses, Work work, Constants constants = {},
                      CallSite where = CallSite::here()) {
    std::array<Tensor, kMostWrites + 1> writes;
    std::size_t own = 0;
    for (const Tensor& tensor : uses.writes) writes.at(own++) = tensor;
    if (workspace_) writes.at(own) = workspace_;
    const auto all = std::span<const Tensor>(writes).first(own + (workspace_ ? 1 : 0));
    submitter_.submit(
        name, {.reads = uses.reads, .writes = all, .stream = uses.stream},
        [maths = &maths_, own, work](Stream& s, Inputs in, Outputs out) {
          work(*maths, s, in, out, out.size() > own ? out[own] : Scratch());
        },
        constants, where);
  }

  /// Returns a new tensor filled with `value`.
  [[nodiscard]] Tensor filled(const Shape& shape, float value, std::string_view label,
                              StreamRole stream = StreamRole::kCompute);
  /// Returns a new tensor of normal numbers.
  [[nodiscard]] Tensor drawn(const Shape& shape, NormalDraw draw, std::string_view label,
                             StreamRole stream = StreamRole::kCompute);
  /// The same in a tensor that there is.
  void fill(const Tensor& tensor, float value, StreamRole stream = StreamRole::kCompute);
  void draw(const Tensor& tensor, NormalDraw draw, StreamRole stream = StreamRole::kCompute);
  /// total += value, in place.
  void accumulate(const Tensor& total, const Tensor& value);

  /// y [m × n] = act(y + b), in place.
  void bias_activation(const Tensor& b, const Tensor& y, Activation activation);
  /// db [n] = the column sums of dy [m × n].
  void bias_gradient(const Tensor& dy, const Tensor& db);
  /// The same for a layer with a relu: first masks dy by the layer's output y, in place.
  void relu_and_bias_gradient(const Tensor& y, const Tensor& dy, const Tensor& db);

  /// Returns loss [1], the L2 loss of the prediction and the targets; see kernels/loss.hpp.
  [[nodiscard]] Tensor l2_loss(const Tensor& prediction, const Tensor& targets);
  /// Returns the loss's gradient at the prediction, in its shape.
  [[nodiscard]] Tensor l2_loss_gradient(const Tensor& prediction, const Tensor& targets);
  /// The same for softmax and cross-entropy: logits [rows × classes], labels [rows]; see
  /// kernels/loss.hpp.
  [[nodiscard]] Tensor softmax_loss(const Tensor& logits, const Tensor& labels);
  [[nodiscard]] Tensor softmax_loss_gradient(const Tensor& logits, const Tensor& labels);
  /// Returns count [1]: how many labels have the largest logit of their row.
  [[nodiscard]] Tensor correct_rows(const Tensor& logits, const Tensor& labels);

  /// w -= rate · g, in place.
  void step(const Tensor& w, const Tensor& g, float rate);
  /// v = momentum · v + g, then w -= rate · v, in place.
  void step_with_momentum(const Tensor& w, const Tensor& g, const Tensor& v, float rate,
                          float momentum);

 private:
  static constexpr std::size_t kMostWrites = 3;

  Submitter submitter_;
  Maths& maths_;
  Tensor workspace_;  ///< empty if the maths needs none
};

}  // namespace weir
