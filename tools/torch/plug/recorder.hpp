#pragma once

// What observes allocations: histories, trackers, the profiler. The allocation path calls this and
// holds no lock: a context recorder takes Python's interpreter lock, and a thread that has that one
// may be waiting here for memory. So no lock of ours is held while anything foreign runs: context
// recorders, trackers, observers, and the ends of contexts.

#include <c10/util/ApproximateClock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/torch/books/recent_entries.hpp"
#include "tools/torch/plug/versions.hpp"

namespace weir::torch_plug {

/// A tensor's memory that Weir serves.
struct Block {
  std::size_t bytes = 0;      ///< rounded
  std::size_t requested = 0;  ///< as asked for
  cudaStream_t stream = nullptr;
  std::shared_ptr<c10::GatheredContext> context;  ///< where it was allocated; null if not recorded
  c10::DeviceIndex device = 0;
};

/// Thread-safe. Never destroyed, like the allocator that has it: contexts hold Python objects.
class Recorder {
 public:
  using Context = std::shared_ptr<c10::GatheredContext>;
  using Level = native_api::RecordContext;

  /// `native` has the user's metadata of each thread.
  explicit Recorder(NativeAllocator& native) noexcept : native_(native) {}

  /// Returns where the caller is, if that is recorded: asked before an allocation.
  [[nodiscard]] Context context() { return gathered(Level::STATE); }
  /// Told after `block` was allocated at `address`. `allocated` bytes are now out on its device.
  void on_allocation(const void* address, const Block& block, std::int64_t allocated) {
    if (observed()) record_allocation(address, block);
    if (c10::memoryProfilingEnabled()) report(address, block, 1, allocated);
  }
  /// Told before the memory goes back to Weir. `allocated` bytes are still out.
  void on_free(const void* address, const Block& block, std::int64_t allocated) {
    if (observed()) record_free(address, block);
    if (c10::memoryProfilingEnabled()) report(address, block, -1, allocated);
  }
  /// Told that `block` cannot be allocated, before the error is thrown. The device has `free` of
  /// `total` bytes, and `allocated` are out.
  void on_failure(const Block& block, std::size_t total, std::size_t free, std::int64_t allocated);
#if WEIR_TORCH_HAS_MEMORY_NOTES
  /// Told of a note on the live block at `address`.
  void on_annotation(const void* address, const Block& block, const std::string& metadata);
#endif

  /// Called when a history begins, changes or ends. `skipped` are names of actions.
  void set_history(bool enabled, native_api::CreateContextFn create, std::size_t most_entries,
                   Level when, bool clear, const std::vector<std::string>& skipped);
  void add_observer(native_api::OutOfMemoryObserver observer);
  void add_tracker(native_api::AllocatorTraceTracker tracker);
  void push_compile_context(const std::string& context);
  void pop_compile_context();
  /// Adds our entries to native's of each device, in the order of time.
  void merge_into(std::vector<std::vector<native_api::TraceEntry>>& natives);

 private:
  using Entry = native_api::TraceEntry;
  using Trackers = std::vector<native_api::AllocatorTraceTracker>;

  [[nodiscard]] bool observed() const noexcept { return observed_.load(std::memory_order_relaxed); }
  /// Returns where the caller is, if the history asks for that at `level`.
  [[nodiscard]] Context gathered(Level level) {
    if (when_.load(std::memory_order_relaxed) < level) return nullptr;
    const native_api::CreateContextFn create = context_.load(std::memory_order_acquire);
    return create == nullptr ? nullptr : create();
  }
  [[nodiscard]] Entry entry(Entry::Action action, std::size_t address, const Block& block,
                            Context context, c10::approx_time_t time);
  void record_allocation(const void* address, const Block& block);
  void record_free(const void* address, const Block& block);
  static void report(const void* address, const Block& block, int sign, std::int64_t allocated);
  [[nodiscard]] std::shared_ptr<const Trackers> trackers() const;
  [[nodiscard]] bool keeps(Entry::Action action) const noexcept {
    return recording_.load(std::memory_order_relaxed) &&
           (skipped_.load(std::memory_order_relaxed) >> static_cast<unsigned>(action) & 1U) == 0;
  }
  [[nodiscard]] RecentEntries<Entry>& of_device(c10::DeviceIndex device);
  void tell(const Entry& entry) const;
  void update_observed();

  NativeAllocator& native_;
  std::atomic<bool> observed_{false};  ///< a history is recorded or there is a tracker
  std::atomic<bool> recording_{false};
  std::atomic<Level> when_{Level::NEVER};
  std::atomic<native_api::CreateContextFn> context_{nullptr};
  std::atomic<std::uint32_t> skipped_{0};  ///< a bit for each action
  c10::ApproximateClockToUnixTimeConverter clock_;

  mutable std::mutex mutex_;                                      ///< a leaf
  std::size_t most_entries_ = 1;                                  ///< guarded by mutex_
  std::vector<std::unique_ptr<RecentEntries<Entry>>> histories_;  ///< by device; guarded by mutex_
  std::vector<native_api::OutOfMemoryObserver> observers_;        ///< guarded by mutex_
  std::shared_ptr<const Trackers> trackers_;                      ///< guarded by mutex_
};

}  // namespace weir::torch_plug
