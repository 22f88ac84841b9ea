#include "trainer/wide/wide_exchange.hpp"

#include <array>
#include <span>

namespace weir {

WideExchange::WideExchange(Operations& operations, const WideRanks& ranks,
                           const std::vector<std::size_t>& widths, std::uint64_t rows)
    : operations_(operations), sparse_(operations), ranks_(ranks) {
  if (!shares(Parallel::kData)) return;
  buckets_.emplace(operations.scheduler(), *ranks.ranks,
                   make_buckets(reduced_sizes(widths, rows), ranks.bucket));
}

void WideExchange::add_up(std::span<const Tensor> tensors) {
  submit_all_reduce(operations_.scheduler(), *ranks_.ranks, tensors);
}

void WideExchange::reduce(const Tensor& gradient) {
  if (buckets_) buckets_->add(gradient);
}

Tensor WideExchange::all_rows(const Tensor& dy, const PackedTensor& batch) {
  const std::size_t n = dy.shape()[1];
  Tensor all = operations_.filled({batch.sizes.rows, n}, 0, "gradients of all rows");
  operations_.submitter().submit(
      "place rows", {.reads = {dy, all}, .writes = {all}},
      [first = batch.sizes.part_first * n](Stream& s, Inputs in, Outputs out) {
        s.copy(out[0].data() + first, in[0].data(), Bytes{in[0].size_bytes()});
      });
  reduce(all);
  return all;
}

void WideExchange::flag_overflow(const Tensor& gradient, const Tensor& state) {
  operations_.submitter().submit(
      "check gradient", {.reads = {gradient, state}, .writes = {state}},
      [maths = &operations_.maths(), n = gradient.shape()[1]](Stream& s, Inputs in, Outputs out) {
        maths->flag_not_finite(s, in[0].first(n), out[0]);
      });
}

Tensor WideExchange::loss_and_gradient(SparseLoss kind, const Tensor& logits,
                                       const PackedTensor& batch) {
  if (kind == SparseLoss::kSoftmax) {
    const Tensor statistics = gathered(sparse_.softmax_statistics(logits, batch));
    return sparse_.softmax_of_parts(statistics, logits, batch);
  }
  Tensor loss = sparse_.loss_and_gradient(kind, logits, batch);  // of this rank's classes
  add_up(std::array{loss});
  return loss;
}

Tensor WideExchange::hits(const Tensor& logits, const PackedTensor& batch) {
  return sparse_.hits_of_parts(gathered(sparse_.top_logits(logits, batch)), batch);
}

Tensor WideExchange::gathered(const Tensor& mine) {
  const Shape& shape = mine.shape();
  const auto count = static_cast<std::size_t>(ranks_.ranks->size());
  Tensor all = operations_.submitter().empty({count * shape[0], shape[1]}, "of all ranks");
  operations_.submitter().submit("all_gather",
                                 {.reads = {mine}, .writes = {all}, .stream = kRanksStream},
                                 [ranks = ranks_.ranks](Stream& s, Inputs in, Outputs out) {
                                   ranks->all_gather(s, in[0], out[0]);
                                 });
  return all;
}

}  // namespace weir
