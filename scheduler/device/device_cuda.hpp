#pragma once

// The device `cuda:N`: the memory of one GPU, page-locked host memory, and four CUDA streams, its
// own or the program's.

#include <array>
#include <memory>
#include <string>

#include "allocator/memory/upstream_cuda.hpp"
#include "allocator/progress/progress_cuda.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/device/device.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "scheduler/device/user_streams_cuda.hpp"

namespace weir {

/// Throws UsageError for streams that are given twice, are of another GPU than number `ordinal`, or
/// whose name means several.
void require_allowed(const CudaUserStreams& streams, int ordinal);

/// What open_device("cuda:N") opens. The destructor waits for all enqueued work. Thread-safe.
class CudaDevice final : public DeviceBackend, private TimelineSource {
 public:
  /// Opens GPU number `ordinal` with `memory` bytes; zero is all. Throws CudaError, and UsageError
  /// for `streams` that are not allowed.
  explicit CudaDevice(int ordinal, Bytes memory = {}, const CudaUserStreams& streams = {});
  ~CudaDevice() override { leave(); }

  [[nodiscard]] std::string name() const override { return "cuda:" + std::to_string(ordinal_); }
  [[nodiscard]] Upstream& upstream() override { return upstream_; }
  [[nodiscard]] Upstream& host_upstream() override { return host_; }
  [[nodiscard]] CudaProgress& progress() override { return progress_; }
  [[nodiscard]] StreamId stream(StreamRole role) const override {
    return streams_.at(index_of(role))->id();
  }
  std::uint64_t enqueue(StreamRole role, Task& task) override {
    return streams_.at(index_of(role))->enqueue(task);
  }
  [[nodiscard]] bool runs_in_enqueue() const noexcept override { return true; }
  [[nodiscard]] bool copies_late(const void* host) const override;
  void drain() noexcept override {
    for (const auto& stream : streams_) stream->drain();
  }
  [[nodiscard]] std::chrono::nanoseconds busy(StreamRole role) const override {
    return streams_.at(index_of(role))->busy();
  }

 private:
  // For live views. Recordings get its streams from a profiler.
  void add_figures(LiveFigures& figures) const override;
  void record_live(TimelineSink& /*sink*/) override {}

  const int ordinal_;
  CudaUpstream upstream_;
  PinnedUpstream host_;
  CudaProgress progress_;
  std::array<std::unique_ptr<CudaStream>, kStreamRoles> streams_;  ///< last: their destructors wait
};

}  // namespace weir
