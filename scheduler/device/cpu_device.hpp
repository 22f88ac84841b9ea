#pragma once

// The cpu device: host memory with a capacity, and four streams, each a worker thread. To the
// layers above it behaves like a GPU: work runs late, in stream order, and frees do not wait.

#include <array>
#include <memory>
#include <string>

#include "allocator/memory/upstream.hpp"
#include "allocator/timeline/source.hpp"
#include "scheduler/device/cpu_stream.hpp"
#include "scheduler/device/device.hpp"

namespace weir {

/// A quarter of the machine's memory, for batches on their way to the device.
[[nodiscard]] Bytes default_host_memory();

class CpuDevice final : public DeviceBackend, private Progress, private TimelineSource {
 public:
  /// Takes memory from `upstream` if given (tests), otherwise `memory` bytes of the host.
  explicit CpuDevice(Bytes memory, std::unique_ptr<Upstream> upstream = nullptr);
  /// Executes all queued work first.
  ~CpuDevice() override;

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] Upstream& upstream() override { return *upstream_; }
  [[nodiscard]] Upstream& host_upstream() override { return host_; }
  [[nodiscard]] Progress& progress() override { return *this; }
  [[nodiscard]] StreamId stream(StreamRole role) const override;
  std::uint64_t enqueue(StreamRole role, Task& task) override;
  [[nodiscard]] bool runs_in_enqueue() const noexcept override { return false; }
  void drain() noexcept override;
  [[nodiscard]] bool copies_late(const void* /*host*/) const override { return true; }
  [[nodiscard]] std::chrono::nanoseconds busy(StreamRole role) const override;
  [[nodiscard]] std::uint16_t timeline_source() const noexcept override { return number(); }

 private:
  [[nodiscard]] Point record(StreamId stream) override;
  [[nodiscard]] std::uint64_t passed(StreamId stream) override;
  [[nodiscard]] bool wait(Point point, std::stop_token stop) override;
  void make_wait(StreamId waiter, Point point) override;

  // For timelines and live views.
  void add_figures(LiveFigures& figures) const override;
  void record_live(TimelineSink& sink) override;

  [[nodiscard]] CpuStream& find(StreamId stream) const;

  const std::unique_ptr<Upstream> upstream_;
  MappedUpstream host_{default_host_memory()};
  std::array<std::unique_ptr<CpuStream>, kStreamRoles> streams_;
  std::array<StreamId, kStreamRoles> ids_{};  ///< the streams' ids, contiguous
};

/// Half of the machine's memory: the host side needs some too.
[[nodiscard]] Bytes default_cpu_memory();
[[nodiscard]] Bytes machine_memory();

}  // namespace weir
