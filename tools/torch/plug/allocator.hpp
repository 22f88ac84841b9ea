#pragma once

// The allocator that PyTorch gets: a decorator over its native one.
//
// Tensors come from Weir. What belongs to a private pool (a CUDA graph's or a MemPool's),
// checkpoints of pools and memory at fixed addresses come from native, whose segments Weir serves
// like any other program's memory. A pointer that Weir did not hand out is native's.
//
// Thread-safe, as PyTorch expects. Never destroyed: tensors outlive static destructors. In a forked
// child a free does nothing, and an allocation fails as native's does, because CUDA does.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/preload/borders/weir.h"
#include "tools/torch/books/live_blocks.hpp"
#include "tools/torch/books/routes.hpp"
#include "tools/torch/books/statistics.hpp"
#include "tools/torch/plug/recorder.hpp"
#include "tools/torch/plug/versions.hpp"

namespace weir::torch_plug {

class WeirAllocator final : public NativeAllocator {
 public:
  /// `native` is PyTorch's own and not in use yet; `deleter` is its.
  WeirAllocator(NativeAllocator& native, c10::DeleterFnPtr deleter) noexcept
      : native_(native), native_deleter_(deleter), recorder_(native) {}
  // Is not called. The base's destructor would bring the table of its inline functions along, and
  // one of those calls the CUDA runtime.
  ~WeirAllocator() override { std::terminate(); }

  // Allocation: allocator.cpp.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void* raw_alloc(std::size_t bytes) override;
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* pointer) override;
  void recordStream(const c10::DataPtr& pointer, c10::cuda::CUDAStream stream) override;
  using NativeAllocator::recordStream;
  void* getBaseAllocation(void* pointer, std::size_t* size) override;

  // Private pools and checkpoints: pools.cpp.
  void beginAllocateToPool(c10::DeviceIndex device, MempoolId pool,
                           std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(c10::DeviceIndex device, MempoolId pool) override;
  void releasePool(c10::DeviceIndex device, MempoolId pool) override;
  bool checkPoolLiveAllocations(c10::DeviceIndex device, MempoolId pool,
                                const std::unordered_set<void*>& expected) override;
  std::shared_ptr<native_api::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                                 MempoolId pool) override;
  native_api::CheckpointDelta setCheckpointPoolState(
      c10::DeviceIndex device, std::shared_ptr<native_api::AllocatorState> state) override;
#if WEIR_TORCH_HAS_FIXED_ADDRESS
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address) override;
#endif
#if WEIR_TORCH_HAS_CAPTURE_MARKS
  void markCaptureBegin(c10::DeviceIndex device) override;
  void markCaptureEnd(c10::DeviceIndex device) override;
#endif
#if WEIR_TORCH_HAS_USE_COUNT
  int getPoolUseCount(c10::DeviceIndex device, MempoolId pool) override;
#endif
#if WEIR_TORCH_HAS_ENSURE_POOL
  void ensureExistsAndIncrefPool(c10::DeviceIndex device, MempoolId pool) override;
#endif
#if WEIR_TORCH_HAS_USE_ON_OOM
  void createOrIncrefPool(c10::DeviceIndex device, MempoolId pool,
                          WEIR_TORCH_POOL_ALLOCATOR allocator) override;
  void setUseOnOOM(c10::DeviceIndex device, MempoolId pool WEIR_TORCH_USE_ON_OOM_MORE) override;
#endif
#if WEIR_TORCH_HAS_NO_SPLIT
  void setNoSplit(c10::DeviceIndex device, MempoolId pool) override;
#endif

  // Settings, cache and statistics: device.cpp.
  std::string name() override;
  void init(int device_count) override;
  bool initialized() override;
  void emptyCache(WEIR_TORCH_EMPTY_CACHE) override;
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override;
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
  DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex peer) override;
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes, cudaStream_t stream, bool peers) override;
#if WEIR_TORCH_HAS_ENABLE
  double getMemoryFraction(c10::DeviceIndex device) override;
  void enable(bool value) override;
  bool isEnabled() const override;
#endif
#if WEIR_TORCH_HAS_SEGMENT_SIZES
  std::vector<native_api::StreamSegmentSize> getExpandableSegmentSizes(
      c10::DeviceIndex device) override;
#endif
#if WEIR_TORCH_HAS_MEMORY_INFO
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override;
#endif

  // History, snapshots and observers: history.cpp and snapshot.cpp.
  native_api::SnapshotInfo snapshot(WEIR_TORCH_SNAPSHOT) override;
  bool isHistoryEnabled() override;
  void recordHistory(bool enabled, native_api::CreateContextFn context, std::size_t most_entries,
                     native_api::RecordContext when WEIR_TORCH_HISTORY_MORE) override;
  void attachOutOfMemoryObserver(native_api::OutOfMemoryObserver observer) override;
  void attachAllocatorTraceTracker(native_api::AllocatorTraceTracker tracker) override;
#if WEIR_TORCH_HAS_ANNOTATIONS
  void recordAnnotation(
      const std::vector<std::pair<std::string, std::string>>& annotation) override;
#endif
#if WEIR_TORCH_HAS_COMPILE_CONTEXT
  void pushCompileContext(std::string& context) override;
  void popCompileContext() override;
#endif
#if WEIR_TORCH_HAS_USER_METADATA
  void setUserMetadata(const std::string& metadata) override;
  std::string getUserMetadata() override;
#endif
#if WEIR_TORCH_HAS_CONTEXT_OF
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* pointer) override;
#endif
#if WEIR_TORCH_HAS_REJECTIONS
  void attachOomRejectionObserver(native_api::OomRejectionObserver observer) override;
#endif
#if WEIR_TORCH_HAS_MEMORY_NOTES
  bool supportsUserMetadata() override;
  void annotateMemory(const void* pointer, const std::string& metadata) override;
#endif

  // Between processes: sharing.cpp.
#if WEIR_TORCH_HAS_SHARING
  native_api::ShareableHandle shareIpcHandle(void* pointer) override;
#endif
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;

 private:
  /// What is known of a device that PyTorch may use.
  struct Device {
    Counters counters;
    std::mutex fraction_mutex;               ///< held while a memory fraction is set
    std::atomic<double> fraction{-1};        ///< of the memory; negative while none was set
    std::atomic<bool> used{false};           ///< by a first tensor
    std::atomic<bool> native_serves{false};  ///< native has served some of its memory
  };

  [[nodiscard]] Device& device_of(c10::DeviceIndex device);
  /// Returns memory on the current device's `stream`; throws PyTorch's OutOfMemoryError.
  [[nodiscard]] void* obtain(c10::DeviceIndex device, std::size_t bytes, cudaStream_t stream);
  [[nodiscard]] void* obtain_from_weir(c10::DeviceIndex device, std::size_t bytes,
                                       cudaStream_t stream);
  [[nodiscard]] void* obtain_from_native(c10::DeviceIndex device, std::size_t bytes,
                                         cudaStream_t stream);
  /// Returns native's own statistics of `device`, and counts its levels with the tensors'.
  DeviceStats look_at_native(c10::DeviceIndex device);
  /// Call after native served memory of `device` or took some back. The peak of the sum needs its
  /// level each time: the sum of two peaks may be more than there ever was.
  void note_native(c10::DeviceIndex device) noexcept;
  /// The same, of any device.
  void note_native() noexcept;
  /// Makes a fraction of PYTORCH_CUDA_ALLOC_CONF (per_process_memory_fraction) Weir's limit.
  void take_fraction_of_settings(Device& of, c10::DeviceIndex device);
  /// What native does as well before it gives up. Returns null if it did not help.
  [[nodiscard]] void* make_room_and_retry(Device& of, const Block& block);
  [[noreturn]] void fail(Device& of, const Block& block);
  /// Adds the segments of Weir's memory on `device`.
  void add_segments(c10::DeviceIndex device, std::vector<native_api::SegmentInfo>& segments);
  /// Returns `pointer`, which came from native, with our deleter.
  [[nodiscard]] c10::DataPtr rewrapped(c10::DataPtr pointer) const;

  /// Returns Weir's figures of `device`; zeros before it is used.
  [[nodiscard]] static weir_memory memory_of(c10::DeviceIndex device) noexcept {
    weir_memory memory{};
    memory.size = sizeof memory;
    (void)weir_memory_info(device, &memory);
    return memory;
  }

  NativeAllocator& native_;
  const c10::DeleterFnPtr native_deleter_;
  std::vector<std::unique_ptr<Device>> devices_;  ///< grows only in init, before the first tensor
  LiveBlocks<Block> blocks_;
  Routes<MempoolId, cudaStream_t> routes_;
  std::atomic<bool> enabled_{true};
  std::atomic<bool> pools_help_{false};  ///< a MemPool was made with use_on_oom
  Recorder recorder_;
};

/// The allocator, once it is installed; null before. Its tensors' deleter finds it here.
extern WeirAllocator* installed;

}  // namespace weir::torch_plug
