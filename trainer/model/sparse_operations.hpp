#pragma once

// What a network does with a sparse batch, as operations on a scheduler: every method submits and
// returns without waiting. See kernels/sparse for what each computes. One thread at a time.

#include "kernels/sparse/packed.hpp"
#include "scheduler/tensor.hpp"
#include "trainer/model/operations.hpp"

namespace weir {

/// A sparse batch on a device, in the layout of packed.hpp.
struct PackedTensor {
  Tensor words;
  PackedSizes sizes;
  SparseWidths widths;
  /// Where the outputs are on another device than the inputs: the labels alone, there; see
  /// SparseOperations::labels_alone. Otherwise empty.
  Tensor label_words{};
};

/// How a network's outputs are compared with the labels of a row.
enum class SparseLoss : std::uint8_t {
  kSoftmax,   ///< the classes exclude each other: softmax, then cross-entropy
  kLogistic,  ///< each class is a question of its own: logistic function, then cross-entropy
};

class SparseOperations {
 public:
  /// `operations` must outlive it.
  explicit SparseOperations(Operations& operations) : operations_(operations) {}

  /// act(X · w + b) [rows × n] of the batch's inputs X, w [columns × n] and b [n].
  [[nodiscard]] Tensor layer(const PackedTensor& batch, const Tensor& w, const Tensor& b,
                             Activation activation);
  /// Returns loss [1] of the logits [rows × classes] and the batch's labels, and replaces the
  /// logits by its gradient at them: they are the largest tensor of a batch.
  [[nodiscard]] Tensor loss_and_gradient(SparseLoss kind, const Tensor& logits,
                                         const PackedTensor& batch);
  /// Returns the batch's labels packed without entries, for another device. Host memory only.
  [[nodiscard]] Tensor labels_alone(const PackedTensor& batch);
  /// Returns count [1]: the rows whose largest logit is one of their labels.
  [[nodiscard]] Tensor hits(const Tensor& logits, const PackedTensor& batch);

  /// The same where each of n ranks has the logits of a part of the classes: what each makes of its
  /// part, and what is made of all parts' results. See kernels/sparse/losses.hpp.
  /// Returns statistics [rows × kSoftmaxStatistics].
  [[nodiscard]] Tensor softmax_statistics(const Tensor& logits, const PackedTensor& batch);
  /// As loss_and_gradient of kSoftmax, from statistics [n × rows × kSoftmaxStatistics].
  [[nodiscard]] Tensor softmax_of_parts(const Tensor& statistics, const Tensor& logits,
                                        const PackedTensor& batch);
  /// Returns tops [rows × kTopLogit].
  [[nodiscard]] Tensor top_logits(const Tensor& logits, const PackedTensor& batch);
  /// As hits, from tops [n × rows × kTopLogit].
  [[nodiscard]] Tensor hits_of_parts(const Tensor& tops, const PackedTensor& batch);

 private:
  /// Submits `work(maths, stream, labels, in, out, scratch)`, whose first input is the batch.
  template <typename Work>
  void submit(std::string_view name, const PackedTensor& batch, const Uses& uses, Work work,
              CallSite where = CallSite::here());
  /// Returns a tensor [this rank's rows × width].
  [[nodiscard]] Tensor empty_rows(const PackedTensor& batch, std::size_t width,
                                  std::string_view label);
  [[nodiscard]] Tensor softmax(const Tensor& logits, const PackedTensor& batch);
  [[nodiscard]] Tensor logistic(const Tensor& logits, const PackedTensor& batch);

  Operations& operations_;
};

}  // namespace weir
