#include "trainer/sparse/sparse_reader.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "allocator/base/error.hpp"
#include "allocator/base/time_after.hpp"

namespace weir {
namespace {

/// Their counts stay in the first cache.
constexpr unsigned kMostDigitBits = 11;

void copy_starts(const std::vector<std::uint64_t>& from, std::span<std::uint32_t> to) {
  std::ranges::transform(from, to.begin(),
                         [](std::uint64_t start) { return static_cast<std::uint32_t>(start); });
}

}  // namespace

/// A radix sort from the lowest digit up (D. Knuth, "The Art of Computer Programming" 3, 5.2.5).
/// It is stable, and entries come row by row, so those of a column stay in the order of rows.
void BatchPacker::sort_by_column(const SparseRows& rows) {
  const auto bits =
      static_cast<unsigned>(std::bit_width(std::max<std::size_t>(rows.columns, 2) - 1));
  const unsigned digits = (bits + kMostDigitBits - 1) / kMostDigitBits;
  const unsigned width = (bits + digits - 1) / digits;
  const std::uint32_t mask = (1U << width) - 1;
  const auto place = [&](unsigned digit, std::uint32_t column) -> std::uint32_t& {
    return places_[(digit << width) + ((column >> (digit * width)) & mask)];
  };

  places_.assign(std::size_t{digits} << width, 0);
  for (const std::uint32_t column : rows.indices) {
    for (unsigned digit = 0; digit < digits; ++digit) ++place(digit, column);
  }
  for (unsigned digit = 0; digit < digits; ++digit) {
    std::uint32_t next = 0;
    for (std::uint32_t value = 0; value <= mask; ++value) {
      next += std::exchange(places_[(digit << width) + value], next);
    }
  }

  sorted_.resize(rows.indices.size());
  spare_.resize(digits == 1 ? 0 : rows.indices.size());
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::uint64_t i = rows.starts[row]; i < rows.starts[row + 1]; ++i) {
      const std::uint32_t column = rows.indices[i];
      sorted_[place(0, column)++] = {column, static_cast<std::uint32_t>(row), rows.values[i]};
    }
  }
  for (unsigned digit = 1; digit < digits; ++digit) {
    for (const Entry& entry : sorted_) spare_[place(digit, entry.column)++] = entry;
    std::swap(sorted_, spare_);
  }
}

PackedSizes BatchPacker::prepare(const SparseRows& rows) {
  if (rows.rows() == 0) throw UsageError("a batch of no rows cannot be packed");
  if (std::max({rows.rows(), rows.indices.size(), rows.labels.size()}) > kMostSparse) {
    throw UsageError("a batch of more than " + std::to_string(kMostSparse) +
                     " rows, entries or labels cannot be packed");
  }
  sort_by_column(rows);
  std::size_t touched = sorted_.empty() ? 0 : 1;
  for (std::size_t i = 1; i < sorted_.size(); ++i) {
    touched += sorted_[i].column != sorted_[i - 1].column ? 1U : 0U;
  }
  sizes_ = {.rows = rows.rows(),
            .entries = rows.indices.size(),
            .touched = touched,
            .labels = rows.labels.size()};
  return sizes_;
}

void BatchPacker::write(const SparseRows& rows, std::span<float> words) const {
  const SparseBatchParts parts = parts_of(words, sizes_);
  copy_starts(rows.starts, parts.row_starts);
  std::ranges::copy(rows.indices, parts.row_indices.begin());
  std::ranges::copy(rows.values, parts.row_values.begin());
  copy_starts(rows.label_starts, parts.label_starts);
  std::ranges::copy(rows.labels, parts.label_indices.begin());

  std::size_t column = 0;
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    if (i == 0 || sorted_[i].column != sorted_[i - 1].column) {
      parts.touched[column] = sorted_[i].column;
      parts.column_starts[column++] = static_cast<std::uint32_t>(i);
    }
    parts.column_rows[i] = sorted_[i].row;
    parts.column_values[i] = sorted_[i].value;
  }
  parts.column_starts[column] = static_cast<std::uint32_t>(sorted_.size());
}

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
