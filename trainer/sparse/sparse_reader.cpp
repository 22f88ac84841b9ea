#include "trainer/sparse/sparse_reader.hpp"

#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {

SparseReader::SparseReader(DeviceMemory staging, SparseSource source,
                           const SparseReaderOptions& options)
    : StagedReader(staging),
      source_(std::move(source)),
      least_(options.least),
      stop_(options.stop),
      slots_(options.ahead),
      next_(options.first),
      claimed_(options.first),
      turn_(options.first) {
  if (options.threads == 0 || options.ahead == 0) {
    throw UsageError("a reader needs at least one thread and one batch ahead");
  }
  try {
    while (threads_.size() < options.threads) threads_.emplace_back([this] { work(); });
  } catch (...) {
    close();
    throw;
  }
}

SparseReader::~SparseReader() { close(); }

void SparseReader::close() {
  {
    const Lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void SparseReader::work() {
  SparseRows rows;
  BatchPacker packer;
  while (const auto index = claim()) {
    const auto ready = time_after_now(least_);
    try {
      const auto batch = make(*index, rows, packer);
      if (!batch) return;
      Lock lock(mutex_);
      if (least_.count() != 0) {
        (void)changed_.wait_until(lock, stop_, ready,
                                  [&]() WEIR_REQUIRES(mutex_) { return closing_; });
      }
      slots_[*index % slots_.size()] = *batch;
    } catch (...) {
      fail(*index);
    }
    changed_.notify_all();
  }
}

std::optional<std::uint64_t> SparseReader::claim() {
  Lock lock(mutex_);
  while (!is_unwanted(claimed_) && claimed_ - next_ >= slots_.size()) changed_.wait(lock);
  if (is_unwanted(claimed_)) return std::nullopt;
  return claimed_++;
}

std::optional<PackedBatch> SparseReader::make(std::uint64_t index, SparseRows& rows,
                                              BatchPacker& packer) {
  rows.clear();
  source_(index, rows);
  const PackedSizes sizes = packer.prepare(rows);
  const std::size_t count = packed_words(sizes);
  const auto buffer = acquire(index, count);
  if (!buffer) return std::nullopt;
  const std::span<float> words(static_cast<float*>(buffer->pointer), count);
  packer.write(rows, words);
  return PackedBatch{.index = index, .sizes = sizes, .words = words, .buffer = *buffer};
}

std::optional<StagingBuffers::Buffer> SparseReader::acquire(std::uint64_t index,
                                                            std::size_t words) {
  Lock lock(mutex_);
  // In the order of batches: otherwise later ones could hold all memory, while the frontend waits
  // for an earlier one. The one whose turn it is gets memory or fails, so each wait here ends.
  while (turn_ != index && !is_unwanted(index)) changed_.wait(lock);
  while (!is_unwanted(index)) {
    // With the first batch's those of all that are ahead, the one at hand and the one being copied.
    const std::size_t others = room_ == 0 ? slots_.size() + 1 : 0;
    room_ = staging_room(words, room_);
    const std::size_t room = room_;
    const std::uint64_t moves = moves_;
    lock.unlock();
    std::optional<StagingBuffers::Buffer> buffer;
    std::exception_ptr refusal;
    try {
      staging_.release_below(room);
      buffer = staging_.acquire(room);
      staging_.obtain(others, room);
    } catch (const OutOfMemory&) {
      refusal = std::current_exception();
    }
    lock.lock();
    if (buffer) {
      ++turn_;
      changed_.notify_all();
      return buffer;
    }
    // Earlier batches that the frontend takes and gives back make room. Once it waits for this one,
    // and has not moved since memory was refused, it has none to give back.
    while (moves_ == moves && !is_unwanted(index)) {
      if (awaited_ && next_ == index) std::rethrow_exception(refusal);
      changed_.wait(lock);
    }
  }
  return std::nullopt;
}

void SparseReader::fail(std::uint64_t index) {
  const Lock lock(mutex_);
  if (is_unwanted(index)) return;
  failure_ = std::current_exception();
  failed_ = index;
}

PackedBatch SparseReader::next() {
  Lock lock(mutex_);
  awaited_ = true;
  ++moves_;
  changed_.notify_all();
  std::optional<PackedBatch>& slot = slots_[next_ % slots_.size()];
  while (!slot && (failure_ == nullptr || failed_ != next_)) changed_.wait(lock);
  awaited_ = false;
  if (!slot) std::rethrow_exception(failure_);
  const PackedBatch batch = *std::exchange(slot, std::nullopt);
  ++next_;
  lock.unlock();
  changed_.notify_all();
  return batch;
}

void SparseReader::give_back(const PackedBatch& batch, Point copied) {
  staging_.give_back(batch.buffer, copied);
  {
    const Lock lock(mutex_);
    ++moves_;
  }
  changed_.notify_all();
}

}  // namespace weir
