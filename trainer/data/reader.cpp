#include "trainer/data/reader.hpp"

#include <algorithm>
#include <utility>

#include "kernels/elementwise/elementwise.hpp"

namespace weir {

BatchSource generated_source(std::uint64_t seed) {
  return [seed](std::uint64_t index, std::span<float> inputs, std::span<float> targets) {
    fill_normal(seed, generated_sequence(index), inputs);
    std::ranges::fill(targets, kGeneratedTarget);
  };
}

Reader::Reader(DeviceMemory staging, BatchShape shape, BatchSource source,
               std::uint64_t made_beforehand)
    : StagedReader(staging), shape_(shape), source_(std::move(source)) {
  for (std::uint64_t i = 0; i < made_beforehand; ++i) made_.push_back(make(i));
  if (made_.empty()) thread_ = std::thread([this] { prefetch(); });
}

Reader::~Reader() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

HostBatch Reader::make(std::uint64_t index) {
  const std::size_t rows = shape_.rows_of(index);
  const std::size_t inputs = rows * shape_.inputs;
  const std::size_t targets = rows * shape_.targets;
  // Also for a shorter batch as much, so that buffers fit all batches.
  const Staging::Buffer buffer = staging_.acquire(shape_.rows * (shape_.inputs + shape_.targets));
  auto* const floats = static_cast<float*>(buffer.pointer);
  source_(index, {floats, inputs}, {floats + inputs, targets});
  return {.inputs = {floats, inputs},
          .targets = {floats + inputs, targets},
          .rows = rows,
          .buffer = buffer};
}

void Reader::prefetch() {
  try {
    for (std::uint64_t index = 0;; ++index) {
      const HostBatch batch = make(index);
      Lock lock(mutex_);
      ready_.push_back(batch);
      changed_.notify_all();
      while (ready_.size() >= kPrefetch && !closing_) changed_.wait(lock);
      if (closing_) return;
    }
  } catch (...) {
    const Lock lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

HostBatch Reader::next() {
  if (!made_.empty()) {
    HostBatch batch = made_[handed_out_++ % made_.size()];
    batch.buffer = {};  // handed out repeatedly: never given back
    return batch;
  }
  Lock lock(mutex_);
  while (ready_.empty() && failure_ == nullptr) changed_.wait(lock);
  if (ready_.empty()) std::rethrow_exception(failure_);
  const HostBatch batch = ready_.front();
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void Reader::give_back(const HostBatch& batch, Point copied) {
  if (batch.buffer.pointer != nullptr) staging_.give_back(batch.buffer, copied);
}

}  // namespace weir
