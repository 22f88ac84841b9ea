#include "trainer/ranks/buckets.hpp"

#include <cstdint>
#include <optional>

namespace weir {

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
