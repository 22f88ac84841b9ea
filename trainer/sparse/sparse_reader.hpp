#pragma once

// Prepares the sparse batches of a run ahead, on several threads, in the staging memory from which
// they are copied to the device. The batches and their order do not depend on the threads.

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/condition.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/memory/upstream.hpp"
#include "kernels/sparse/packed.hpp"
#include "trainer/data/staging.hpp"
#include "trainer/sparse/sparse_source.hpp"

namespace weir {

/// Packs a batch of rows for the device: by rows, by columns, and its labels. Keeps its working
/// memory, so use one for many batches. One thread at a time.
class BatchPacker {
 public:
  /// Sorts the entries by column and returns the sizes. Throws UsageError if there is no row, or
  /// more than kMostSparse rows, entries or labels.
  [[nodiscard]] PackedSizes prepare(const SparseRows& rows);
  /// Writes the rows of the last `prepare`, which have not changed since, in the layout of
  /// packed.hpp. Throws UsageError if `words` are not exactly packed_words of its sizes.
  void write(const SparseRows& rows, std::span<float> words) const;

 private:
  struct Entry {
    std::uint32_t column;
    std::uint32_t row;
    float value;
  };
  void sort_by_column(const SparseRows& rows);

  PackedSizes sizes_;
  std::vector<Entry> sorted_;  ///< by column, then by row
  std::vector<Entry> spare_;
  std::vector<std::uint32_t> places_;  ///< of each digit's values, where the next one goes
};

struct SparseReaderOptions {
  std::size_t threads = 1;
  std::size_t ahead = 2;    ///< batches ready or being made, at most; of more threads some idle
  std::uint64_t first = 0;  ///< the first batch: where a run that is resumed stopped
  /// The least time of a thread for a batch, from its claim until it is ready: as slow storage.
  /// Ends early once `stop` is requested.
  std::chrono::nanoseconds least{};
  std::stop_token stop{};
};

/// One batch in host memory.
struct PackedBatch {
  std::uint64_t index = 0;
  PackedSizes sizes{};
  std::span<const float> words{};   ///< in the layout of packed.hpp
  StagingBuffers::Buffer buffer{};  ///< holds `words`; to give back
};

/// Returns the words to ask for where a batch needs `needed` and the buffers so far have `room`. An
/// eighth more than a batch that does not fit, so that the next larger one does: batches vary, and
/// every new size would be pinned anew. In whole KiB.
[[nodiscard]] constexpr std::size_t staging_room(std::size_t needed, std::size_t room) noexcept {
  constexpr std::size_t kStep = 256;
  return needed <= room ? room : (needed + needed / 8 + kStep - 1) / kStep * kStep;
}

/// `next` and `give_back` are for one thread, the frontend.
class SparseReader final : public StagedReader {
 public:
  /// Buffers come from the host memory of `staging` and are reused after its progress. Both must
  /// outlive the reader, and the reader every copy from it. Throws UsageError without a thread or
  /// without a batch ahead.
  SparseReader(DeviceMemory staging, SparseSource source, const SparseReaderOptions& options);
  /// Waits for calls of the source that are under way.
  ~SparseReader() override;

  /// Returns the next batch. Waits only for the reader's own threads. Rethrows what making this
  /// batch threw, now and at every later call: the source's exception, or OutOfMemory if no staging
  /// memory is left although the frontend has given all back and the device is done with it.
  [[nodiscard]] PackedBatch next();
  /// Call when the device is done with the batch's memory once `copied` is passed. Points are of
  /// one stream, in its order.
  void give_back(const PackedBatch& batch, Point copied);

 private:
  void work();
  /// Returns the number of the next batch to make, once there may be one; nothing at the end.
  [[nodiscard]] std::optional<std::uint64_t> claim();
  [[nodiscard]] std::optional<PackedBatch> make(std::uint64_t index, SparseRows& rows,
                                                BatchPacker& packer);
  /// Returns memory for `words`; nothing if the batch is not wanted any more.
  [[nodiscard]] std::optional<StagingBuffers::Buffer> acquire(std::uint64_t index,
                                                              std::size_t words);
  void fail(std::uint64_t index);
  void close();
  /// Returns whether nobody will ask for batch `index`.
  [[nodiscard]] bool is_unwanted(std::uint64_t index) const WEIR_REQUIRES(mutex_) {
    return closing_ || (failure_ != nullptr && failed_ < index);
  }

  const SparseSource source_;
  const std::chrono::nanoseconds least_;
  const std::stop_token stop_;

  Mutex mutex_{LockRank::kLeaf};
  Condition changed_;  ///< for every change of what follows
  /// Batch i, once made, is in slot i % size.
  std::vector<std::optional<PackedBatch>> slots_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t next_ WEIR_GUARDED_BY(mutex_);       ///< the frontend's next batch
  std::uint64_t claimed_ WEIR_GUARDED_BY(mutex_);    ///< the next batch to make
  std::uint64_t turn_ WEIR_GUARDED_BY(mutex_);       ///< the batch that gets memory next
  std::size_t room_ WEIR_GUARDED_BY(mutex_) = 0;     ///< words of a buffer
  bool awaited_ WEIR_GUARDED_BY(mutex_) = false;     ///< the frontend waits for its next batch
  std::uint64_t moves_ WEIR_GUARDED_BY(mutex_) = 0;  ///< calls of the frontend so far
  bool closing_ WEIR_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ WEIR_GUARDED_BY(mutex_);
  std::uint64_t failed_ WEIR_GUARDED_BY(mutex_) = 0;  ///< the first batch that failed

  std::vector<std::thread> threads_;
};

}  // namespace weir
