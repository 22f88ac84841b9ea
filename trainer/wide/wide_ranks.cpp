#include "trainer/wide/wide_ranks.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "allocator/base/setting.hpp"

namespace weir {
namespace {

ModelSplit model_split(const WideSplit& split, std::uint64_t rows) {
  return {.inputs = split.widths.front(),
          .first = split.widths[1],
          .last = split.widths[split.widths.size() - 2],
          .outputs = split.widths.back(),
          .rows = rows,
          .ranks = split.ranks};
}

/// The buckets of every batch have the gradients of a whole one's.
DataSplit data_split(const WideSplit& split, std::uint64_t rows) {
  DataSplit data{.ranks = split.ranks};
  const std::vector<Bytes> sizes = reduced_sizes(split.widths, rows);
  auto next = sizes.begin();
  for (const std::size_t count :
       make_buckets(reduced_sizes(split.widths, split.rows), split.bucket)) {
    std::uint64_t& floats = data.buckets.emplace_back();
    for (std::size_t i = 0; i < count; ++i) floats += (next++)->count / sizeof(float);
  }
  return data;
}

/// Calls `add(i, number)` for numbers[begin] to numbers[end - 1] that are in the range, counted
/// from its first.
template <typename Add>
void for_each_within(Shard range, const std::vector<std::uint32_t>& numbers, std::uint64_t begin,
                     std::uint64_t end, const Add& add) {
  for (std::uint64_t i = begin; i < end; ++i) {
    const std::uint64_t number = numbers[i];
    if (number < range.first || number >= range.first + range.count) continue;
    add(i, static_cast<std::uint32_t>(number - range.first));
  }
}

}  // namespace

Shard WideRanks::part_of(std::uint64_t total) const noexcept {
  if (!share(Parallel::kModel)) return {.first = 0, .count = total};
  return shard_of(total, ranks->rank(), ranks->size());
}

std::vector<Bytes> reduced_sizes(const std::vector<std::size_t>& widths, std::uint64_t rows) {
  std::vector<Bytes> sizes;
  for (std::size_t l = widths.size() - 1; l-- > 0;) {
    sizes.push_back({widths[l + 1] * sizeof(float)});
    sizes.push_back({(l == 0 ? rows : widths[l]) * widths[l + 1] * sizeof(float)});
  }
  return sizes;
}

std::uint64_t step_bytes(const WideSplit& split, std::uint64_t rows) {
  if (split.parallel == Parallel::kData) {
    return data_step_bytes(data_split(split, rows), split.rank);
  }
  return model_step_bytes(model_split(split, rows), split.rank, split.loss == SparseLoss::kSoftmax);
}

std::string describe_step(const WideSplit& split) {
  if (split.parallel == Parallel::kData) {
    return describe_data_step(data_split(split, split.rows), split.rank);
  }
  return describe_model_step(model_split(split, split.rows), split.rank,
                             split.loss == SparseLoss::kSoftmax);
}

SparseSource part_of_columns(SparseSource source, Shard inputs, Shard outputs) {
  return [source = std::move(source), inputs, outputs](std::uint64_t index, SparseRows& rows) {
    SparseRows all;
    source(index, all);
    rows.columns = inputs.count;
    rows.classes = outputs.count;
    for (std::size_t r = 0; r < all.rows(); ++r) {
      for_each_within(inputs, all.indices, all.starts[r], all.starts[r + 1],
                      [&](std::uint64_t i, std::uint32_t column) {
                        rows.indices.push_back(column);
                        rows.values.push_back(all.values[i]);
                      });
      for_each_within(
          outputs, all.labels, all.label_starts[r], all.label_starts[r + 1],
          [&](std::uint64_t /*i*/, std::uint32_t label) { rows.labels.push_back(label); });
      rows.end_row();
    }
  };
}

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
  operations_.submit("check gradient", {.reads = {gradient, state}, .writes = {state}},
                     [n = gradient.shape()[1]](Maths& m, Stream& s, Inputs in, Outputs out) {
                       m.flag_not_finite(s, in[0].first(n), out[0]);
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
  Tensor all = operations_.empty({count * shape[0], shape[1]}, "of all ranks");
  operations_.submitter().submit("all_gather",
                                 {.reads = {mine}, .writes = {all}, .stream = kRanksStream},
                                 [ranks = ranks_.ranks](Stream& s, Inputs in, Outputs out) {
                                   ranks->all_gather(s, in[0], out[0]);
                                 });
  return all;
}

Setting<Bytes> bucket_setting(const Environment& environment) {
  Setting<Bytes> bucket = Setting<Bytes>::by_default(kDefaultBucket);
  read_setting(bucket, environment, {"MXNET_KVSTORE_REDUCE_BUCKET_SIZE"}, parse_some_bytes);
  return bucket;
}

std::vector<std::size_t> make_buckets(std::span<const Bytes> sizes, Bytes most) {
  std::vector<std::size_t> buckets;
  Bytes in_last{};
  for (const Bytes size : sizes) {
    if (buckets.empty() || in_last.count + size.count > most.count) {
      buckets.push_back(0);
      in_last = {};
    }
    ++buckets.back();
    in_last.count += size.count;
  }
  return buckets;
}

void BucketedReduce::add(const Tensor& gradient) {
  gathered_.push_back(gradient);
  if (gathered_.size() < buckets_.at(current_)) return;
  submit_all_reduce(scheduler_, ranks_, gathered_);
  gathered_.clear();
  current_ = (current_ + 1) % buckets_.size();
}

void submit_all_reduce(Scheduler& scheduler, Communicator& ranks, std::span<const Tensor> tensors) {
  scheduler.submit("all_reduce", {.reads = tensors, .writes = tensors, .stream = kRanksStream},
                   [&ranks](Stream& stream, Inputs, Outputs out) {
                     std::vector<std::span<float>> parts;
                     parts.reserve(out.size());
                     for (std::size_t i = 0; i < out.size(); ++i) parts.push_back(out[i]);
                     ranks.all_reduce(stream, parts);
                   });
}

}  // namespace weir
