#pragma once

// What a model computes, on one kind of device: the interface between the trainer and the kernels.
//
// Every function enqueues on `stream` and returns; the cpu device, whose streams are threads,
// computes at once. Spans are device memory of the sizes given in the kernels' headers
// (kernels/dense.hpp, loss.hpp, elementwise.hpp, random.hpp, and those
// of sparse/, optimizer/ and precision/); otherwise throws UsageError. `workspace` is scratch
// memory of `workspace()` bytes that nothing else uses meanwhile, empty if that is zero.
//
// Called inside submitted closures, which keep a pointer to the Maths: it must outlive them.
// Thread-safe for disjoint outputs.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "kernels/dense.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/step.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// Normal numbers from the Philox stream `sequence` of `seed`, times `deviation`.
struct NormalDraw {
  std::uint64_t seed = 0;
  std::uint64_t sequence = 0;
  float deviation = 1;
  std::uint64_t first = 0;  ///< the number of the first one in the stream
};

class Maths {
 public:
  using In = std::span<const float>;
  using Out = std::span<float>;

  Maths() = default;
  Maths(const Maths&) = delete;
  Maths& operator=(const Maths&) = delete;
  virtual ~Maths() = default;

  /// Returns the scratch memory that functions with a `workspace` need.
  [[nodiscard]] virtual Bytes workspace() const noexcept = 0;

  virtual void fill(Stream& stream, float value, Out out) = 0;
  /// out[i] = deviation * number first + i; the same bits on every device.
  virtual void fill_normal(Stream& stream, NormalDraw draw, Out out) = 0;
  /// total[i] += x[i].
  virtual void add(Stream& stream, In x, Out total) = 0;

  /// y = act(x W + b).
  virtual void dense_forward(Stream& stream, DenseShape shape, In x, In w, In b, Out y,
                             Activation activation, Out workspace) = 0;
  /// y = act(y + b).
  virtual void bias_activation(Stream& stream, DenseShape shape, In b, Out y,
                               Activation activation) = 0;
  /// dW = x^T dy.
  virtual void dense_weight_gradient(Stream& stream, DenseShape shape, In x, In dy, Out dw,
                                     Out workspace) = 0;
  /// dx = dy W^T.
  virtual void dense_input_gradient(Stream& stream, DenseShape shape, In dy, In w, Out dx,
                                    Out workspace) = 0;
  /// db = the sum of the rows of dy.
  virtual void dense_bias_gradient(Stream& stream, DenseShape shape, In dy, Out db,
                                   Out workspace) = 0;
  /// dy[i] = 0 wherever not y[i] > 0, in place; then db = the sum of the rows of dy.
  virtual void relu_and_bias_gradient(Stream& stream, DenseShape shape, In y, Out dy, Out db,
                                      Out workspace) = 0;

  /// loss[0] = 1/2 mean((p - t)^2).
  virtual void l2_loss(Stream& stream, In p, In t, Out loss, Out workspace) = 0;
  /// dp = its gradient.
  virtual void l2_loss_gradient(Stream& stream, In p, In t, Out dp) = 0;
  /// loss[0] = the mean of the rows' cross-entropy after softmax.
  virtual void softmax_cross_entropy(Stream& stream, LogitShape shape, In z, In labels, Out loss,
                                     Out workspace) = 0;
  /// dz = its gradient.
  virtual void softmax_cross_entropy_gradient(Stream& stream, LogitShape shape, In z, In labels,
                                              Out dz) = 0;
  /// correct[0] = the number of rows whose label has the largest logit.
  virtual void count_correct(Stream& stream, LogitShape shape, In z, In labels, Out correct,
                             Out workspace) = 0;

  /// w -= rate * g.
  virtual void sgd(Stream& stream, Out w, In g, float rate) = 0;
  /// v = momentum * v + g, then w -= rate * v.
  virtual void sgd_momentum(Stream& stream, Out w, In g, Out v, float rate, float momentum) = 0;

  /// y = act(X W + b) of a sparse X.
  virtual void csr_forward(Stream& stream, const CsrRows& x, In w, In b, Out y,
                           Activation activation) = 0;
  /// statistics [rows x kSoftmaxStatistics] of the logits z.
  virtual void softmax_statistics(Stream& stream, const SparseLabels& labels, In z, Out statistics,
                                  Out workspace) = 0;
  /// loss[0] = the mean loss of the rows.
  virtual void softmax_loss(Stream& stream, const SparseLabels& labels, In statistics, Out loss,
                            Out workspace) = 0;
  /// dz = its gradient; dz may be z.
  virtual void softmax_gradient(Stream& stream, const SparseLabels& labels, In z, In statistics,
                                Out dz) = 0;
  /// loss[0] = the mean loss of the rows, dz = its gradient; dz may be z.
  virtual void logistic_loss_and_gradient(Stream& stream, const SparseLabels& labels, In z,
                                          Out loss, Out dz, Out workspace) = 0;
  /// hits[0] = the number of rows whose largest logit is one of their labels.
  virtual void count_hits(Stream& stream, const SparseLabels& labels, In z, Out hits,
                          Out workspace) = 0;
  /// tops [rows x kTopLogit] of the logits z.
  virtual void top_logits(Stream& stream, const SparseLabels& labels, In z, Out tops,
                          Out workspace) = 0;
  /// statistics = those of all parts of the classes.
  virtual void merge_softmax_statistics(Stream& stream, In parts, Out statistics) = 0;
  /// hits[0] = the number of rows whose largest logit, of all parts, is one of their labels.
  virtual void merge_hits(Stream& stream, In parts, std::size_t rows, Out hits, Out workspace) = 0;

  /// The products of a dense layer in `precision`; see kernels/dense_mixed.hpp. In 16 bits x, w and
  /// dy are words as half_words.hpp lays them out.
  virtual void mixed_forward(Stream& stream, Precision precision, DenseShape shape, In x, In w,
                             In b, Out y, Activation activation, Out workspace) = 0;
  virtual void mixed_weight_gradient(Stream& stream, Precision precision, DenseShape shape, In x,
                                     In dy, Out dw, Out workspace) = 0;
  virtual void mixed_input_gradient(Stream& stream, Precision precision, DenseShape shape, In dy,
                                    In w, Out dx, Out workspace) = 0;
  /// words = x in 16 bits.
  virtual void to_half(Stream& stream, HalfKind kind, In x, Out words) = 0;
  /// x *= the loss scale of `state`, and words = x in 16 bits.
  virtual void scale_to_half(Stream& stream, HalfKind kind, In state, Out x, Out words) = 0;
  /// Sets the overflow flag of `state` if an element of x is not finite.
  virtual void flag_not_finite(Stream& stream, In x, Out state) = 0;

  /// Counts a step of the optimizer, whose state is that of kernels/parts/step_state.hpp.
  virtual void begin_step(Stream& stream, const OptimizerOptions& options, Out state) = 0;
  /// Decides on the loss scale of the next step.
  virtual void end_step(Stream& stream, const LossScaling& scaling, Out state) = 0;
  /// Changes weights by their gradient.
  virtual void update(Stream& stream, const OptimizerOptions& options, const Weights& weights, In g,
                      In state) = 0;
  /// Changes the weights of a layer with the sparse input X by X^T dy.
  virtual void update_rows(Stream& stream, const OptimizerOptions& options, const Weights& weights,
                           DenseShape shape, const CsrColumns& x, In dy, In state,
                           UpdatedRows rows) = 0;
};

/// Returns the maths for this kind of device. Throws UsageError for a device that open_device does
/// not know, and Error if the GPU's libraries fail.
[[nodiscard]] std::unique_ptr<Maths> make_maths(const Device& device);

/// Returns the scratch memory that the device's maths needs, without opening the device.
[[nodiscard]] Bytes workspace_of(std::string_view device);

/// Uses kernels/ and needs no workspace.
[[nodiscard]] std::unique_ptr<Maths> make_cpu_maths();
/// Uses the kernels of GPU number `ordinal`. Throws UsageError if this build has no CUDA.
[[nodiscard]] std::unique_ptr<Maths> make_cuda_maths(int ordinal);
/// Returns its scratch memory; zero if this build has no CUDA.
[[nodiscard]] Bytes cuda_workspace() noexcept;

}  // namespace weir
