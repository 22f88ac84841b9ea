#include "trainer/model/sparse_operations.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/sparse/losses.hpp"
#include "trainer/model/operation_writes.hpp"

namespace weir {
namespace {

/// The numbers of a batch's layout; see Constants.
std::array<double, 4> numbers_of(const PackedSizes& sizes) {
  return {static_cast<double>(sizes.rows), static_cast<double>(sizes.entries),
          static_cast<double>(sizes.touched), static_cast<double>(sizes.labels)};
}

/// The labels of a batch with these sizes.
PackedSizes label_sizes(const PackedSizes& sizes) {
  return {.rows = sizes.rows, .entries = 0, .touched = 0, .labels = sizes.labels};
}

/// Returns the batch as those see it who use its labels.
PackedTensor labels_of(const PackedTensor& batch) {
  if (!batch.label_words) return batch;
  return {batch.label_words, label_sizes(batch.sizes), batch.widths, {}};
}

}  // namespace

Tensor SparseOperations::layer(const PackedTensor& batch, const Tensor& w, const Tensor& b,
                               Activation activation) {
  Submitter& submitter = operations_.submitter();
  Tensor y = submitter.empty({batch.sizes.own_rows(), w.shape()[1]}, "activations");
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("sparse layer", {.reads = {batch.words, w, b}, .writes = {y}},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths,
                    activation](Stream& s, Inputs in, Outputs out) {
                     const SparseBatch x = unpack(in[0], sizes, widths);
                     maths->csr_forward(s, x.rows, in[1], in[2], out[0], activation);
                   },
                   {rows, entries, touched, labels});
  return y;
}

Tensor SparseOperations::loss_and_gradient(SparseLoss kind, const Tensor& logits,
                                           const PackedTensor& batch) {
  const PackedTensor labels = labels_of(batch);
  return kind == SparseLoss::kSoftmax ? softmax(logits, labels) : logistic(logits, labels);
}

Tensor SparseOperations::softmax(const Tensor& logits, const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor loss = submitter.empty({1}, "loss");
  const Tensor statistics =
      submitter.empty({batch.sizes.own_rows(), kSoftmaxStatistics}, "softmax statistics");
  std::vector<Tensor> writes{logits, loss, statistics};
  if (operations_.workspace()) writes.push_back(operations_.workspace());
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("softmax loss", {.reads = {batch.words, logits}, .writes = writes},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->softmax_statistics(s, y, out[0], out[2], workspace_behind(3, out));
                     maths->softmax_loss(s, y, out[2], out[1], workspace_behind(3, out));
                     maths->softmax_gradient(s, y, out[0], out[2], out[0]);
                   },
                   {rows, entries, touched, labels});
  return loss;
}

Tensor SparseOperations::logistic(const Tensor& logits, const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor loss = submitter.empty({1}, "loss");
  const OperationWrites writes(operations_.workspace(), logits, loss);
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("logistic loss", {.reads = {batch.words, logits}, .writes = writes.list()},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->logistic_loss_and_gradient(s, y, out[0], out[1], out[0],
                                                       workspace_behind(2, out));
                   },
                   {rows, entries, touched, labels});
  return loss;
}

Tensor SparseOperations::labels_alone(const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  const PackedSizes alone = label_sizes(batch.sizes);
  Tensor labels = submitter.empty({packed_words(alone)}, "labels");
  const auto [rows, entries, touched, count] = numbers_of(batch.sizes);
  submitter.submit(
      "labels", {.reads = {batch.words}, .writes = {labels}},
      [sizes = batch.sizes, alone, widths = batch.widths](Stream&, Inputs in, Outputs out) {
        const SparseLabels from = unpack(in[0], sizes, widths).labels;
        const SparseBatchParts to = parts_of(out[0], alone);
        std::ranges::fill(out[0], 0.0F);  // the starts of no entries
        std::ranges::copy(from.starts, to.label_starts.begin());
        std::ranges::copy(from.indices, to.label_indices.begin());
      },
      {rows, entries, touched, count});
  return labels;
}

Tensor SparseOperations::hits(const Tensor& logits, const PackedTensor& batch) {
  const PackedTensor packed = labels_of(batch);
  Submitter& submitter = operations_.submitter();
  Tensor hits = submitter.empty({1}, "hits");
  const OperationWrites writes(operations_.workspace(), hits);
  const auto [rows, entries, touched, labels] = numbers_of(packed.sizes);
  submitter.submit("count hits", {.reads = {packed.words, logits}, .writes = writes.list()},
                   [maths = &operations_.maths(), sizes = packed.sizes, widths = packed.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->count_hits(s, y, in[1], out[0], workspace_behind(1, out));
                   },
                   {rows, entries, touched, labels});
  return hits;
}

Tensor SparseOperations::softmax_statistics(const Tensor& logits, const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor statistics =
      submitter.empty({batch.sizes.own_rows(), kSoftmaxStatistics}, "softmax statistics");
  const OperationWrites writes(operations_.workspace(), statistics);
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("softmax statistics", {.reads = {batch.words, logits}, .writes = writes.list()},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->softmax_statistics(s, y, in[1], out[0], workspace_behind(1, out));
                   },
                   {rows, entries, touched, labels});
  return statistics;
}

Tensor SparseOperations::softmax_of_parts(const Tensor& statistics, const Tensor& logits,
                                          const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor loss = submitter.empty({1}, "loss");
  const Tensor merged =
      submitter.empty({batch.sizes.own_rows(), kSoftmaxStatistics}, "softmax statistics");
  std::vector<Tensor> writes{logits, loss, merged};
  if (operations_.workspace()) writes.push_back(operations_.workspace());
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("softmax loss", {.reads = {batch.words, logits, statistics}, .writes = writes},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->merge_softmax_statistics(s, in[2], out[2]);
                     maths->softmax_loss(s, y, out[2], out[1], workspace_behind(3, out));
                     maths->softmax_gradient(s, y, out[0], out[2], out[0]);
                   },
                   {rows, entries, touched, labels});
  return loss;
}

Tensor SparseOperations::top_logits(const Tensor& logits, const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor tops = submitter.empty({batch.sizes.own_rows(), kTopLogit}, "largest logits");
  const OperationWrites writes(operations_.workspace(), tops);
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  submitter.submit("largest logits", {.reads = {batch.words, logits}, .writes = writes.list()},
                   [maths = &operations_.maths(), sizes = batch.sizes, widths = batch.widths](
                       Stream& s, Inputs in, Outputs out) {
                     const SparseLabels y = unpack(in[0], sizes, widths).labels;
                     maths->top_logits(s, y, in[1], out[0], workspace_behind(1, out));
                   },
                   {rows, entries, touched, labels});
  return tops;
}

Tensor SparseOperations::hits_of_parts(const Tensor& tops, const PackedTensor& batch) {
  Submitter& submitter = operations_.submitter();
  Tensor hits = submitter.empty({1}, "hits");
  const OperationWrites writes(operations_.workspace(), hits);
  submitter.submit("count hits", {.reads = {tops}, .writes = writes.list()},
                   [maths = &operations_.maths(), rows = batch.sizes.own_rows()](
                       Stream& s, Inputs in, Outputs out) {
                     maths->merge_hits(s, in[0], rows, out[0], workspace_behind(1, out));
                   },
                   {static_cast<double>(batch.sizes.own_rows())});
  return hits;
}

}  // namespace weir
