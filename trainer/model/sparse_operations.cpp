#include "trainer/model/sparse_operations.hpp"

#include <algorithm>
#include <array>

#include "kernels/sparse/losses.hpp"

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

template <typename Work>
void SparseOperations::submit(std::string_view name, const PackedTensor& batch, const Uses& uses,
                              Work work, CallSite where) {
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  operations_.submit_scratch(
      name, uses,
      [sizes = batch.sizes, widths = batch.widths, work](Maths& m, Stream& s, Inputs in,
                                                         Outputs out, Scratch scratch) {
        work(m, s, unpack(in[0], sizes, widths).labels, in, out, scratch);
      },
      {rows, entries, touched, labels}, where);
}

Tensor SparseOperations::empty_rows(const PackedTensor& batch, std::size_t width,
                                    std::string_view label) {
  return operations_.empty({batch.sizes.own_rows(), width}, label);
}

Tensor SparseOperations::layer(const PackedTensor& batch, const Tensor& w, const Tensor& b,
                               Activation activation) {
  Tensor y = empty_rows(batch, w.shape()[1], "activations");
  const auto [rows, entries, touched, labels] = numbers_of(batch.sizes);
  operations_.submit("sparse layer", {.reads = {batch.words, w, b}, .writes = {y}},
                     [sizes = batch.sizes, widths = batch.widths, activation](
                         Maths& m, Stream& s, Inputs in, Outputs out) {
                       const SparseBatch x = unpack(in[0], sizes, widths);
                       m.csr_forward(s, x.rows, in[1], in[2], out[0], activation);
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
  Tensor loss = operations_.empty({1}, "loss");
  const Tensor statistics = empty_rows(batch, kSoftmaxStatistics, "softmax statistics");
  submit("softmax loss", batch,
         {.reads = {batch.words, logits}, .writes = {logits, loss, statistics}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs, Outputs out, Scratch scratch) {
           m.softmax_statistics(s, y, out[0], out[2], scratch);
           m.softmax_loss(s, y, out[2], out[1], scratch);
           m.softmax_gradient(s, y, out[0], out[2], out[0]);
         });
  return loss;
}

Tensor SparseOperations::logistic(const Tensor& logits, const PackedTensor& batch) {
  Tensor loss = operations_.empty({1}, "loss");
  submit("logistic loss", batch, {.reads = {batch.words, logits}, .writes = {logits, loss}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs, Outputs out, Scratch scratch) {
           m.logistic_loss_and_gradient(s, y, out[0], out[1], out[0], scratch);
         });
  return loss;
}

Tensor SparseOperations::labels_alone(const PackedTensor& batch) {
  const PackedSizes alone = label_sizes(batch.sizes);
  Tensor labels = operations_.empty({packed_words(alone)}, "labels");
  const auto [rows, entries, touched, count] = numbers_of(batch.sizes);
  operations_.submit(
      "labels", {.reads = {batch.words}, .writes = {labels}},
      [sizes = batch.sizes, alone, widths = batch.widths](Maths&, Stream&, Inputs in, Outputs out) {
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
  Tensor hits = operations_.empty({1}, "hits");
  submit("count hits", packed, {.reads = {packed.words, logits}, .writes = {hits}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs in, Outputs out, Scratch scratch) {
           m.count_hits(s, y, in[1], out[0], scratch);
         });
  return hits;
}

Tensor SparseOperations::softmax_statistics(const Tensor& logits, const PackedTensor& batch) {
  Tensor statistics = empty_rows(batch, kSoftmaxStatistics, "softmax statistics");
  submit("softmax statistics", batch, {.reads = {batch.words, logits}, .writes = {statistics}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs in, Outputs out, Scratch scratch) {
           m.softmax_statistics(s, y, in[1], out[0], scratch);
         });
  return statistics;
}

Tensor SparseOperations::softmax_of_parts(const Tensor& statistics, const Tensor& logits,
                                          const PackedTensor& batch) {
  Tensor loss = operations_.empty({1}, "loss");
  const Tensor merged = empty_rows(batch, kSoftmaxStatistics, "softmax statistics");
  submit("softmax loss", batch,
         {.reads = {batch.words, logits, statistics}, .writes = {logits, loss, merged}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs in, Outputs out, Scratch scratch) {
           m.merge_softmax_statistics(s, in[2], out[2]);
           m.softmax_loss(s, y, out[2], out[1], scratch);
           m.softmax_gradient(s, y, out[0], out[2], out[0]);
         });
  return loss;
}

Tensor SparseOperations::top_logits(const Tensor& logits, const PackedTensor& batch) {
  Tensor tops = empty_rows(batch, kTopLogit, "largest logits");
  submit("largest logits", batch, {.reads = {batch.words, logits}, .writes = {tops}},
         [](Maths& m, Stream& s, const SparseLabels& y, Inputs in, Outputs out, Scratch scratch) {
           m.top_logits(s, y, in[1], out[0], scratch);
         });
  return tops;
}

Tensor SparseOperations::hits_of_parts(const Tensor& tops, const PackedTensor& batch) {
  Tensor hits = operations_.empty({1}, "hits");
  operations_.submit_scratch("count hits", {.reads = {tops}, .writes = {hits}},
                             [rows = batch.sizes.own_rows()](Maths& m, Stream& s, Inputs in,
                                                             Outputs out, Scratch scratch) {
                               m.merge_hits(s, in[0], rows, out[0], scratch);
                             },
                             {static_cast<double>(batch.sizes.own_rows())});
  return hits;
}

}  // namespace weir
