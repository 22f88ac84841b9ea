#pragma once

/// @file
/// A device: memory, the progress of its streams, and streams that execute tasks in order. The
/// scheduler is the same for every device.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "allocator/memory/upstream.hpp"
#include "scheduler/device/stream.hpp"

namespace weir {

/// The interface of a kind of device. Thread-safe.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  /// Returns the name that open_device accepts.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Its raw memory. Lives as long as the device.
  [[nodiscard]] virtual Upstream& upstream() = 0;
  /// Host memory for copies that run late: pinned if the device needs that.
  [[nodiscard]] virtual Upstream& host_upstream() = 0;
  /// The progress of its streams. Lives as long as the device.
  [[nodiscard]] virtual Progress& progress() = 0;
  /// Returns the id of the stream with this role.
  [[nodiscard]] virtual StreamId stream(StreamRole role) const = 0;
  /// Enqueues the task and returns the stream's sequence once the task is done. The task must stay
  /// valid until its `finished`. After a throw nothing is enqueued. One call at a time for each
  /// stream.
  virtual std::uint64_t enqueue(StreamRole role, Task& task) = 0;
  /// Whether `enqueue` runs the task, and with it a user's closure, before it returns. Otherwise it
  /// only queues the task, which is fast.
  [[nodiscard]] virtual bool runs_in_enqueue() const noexcept = 0;
  /// Waits until every task is finished, also after an error or on a failed device. Nobody may
  /// enqueue meanwhile. Not from a thread that serves the device.
  virtual void drain() noexcept = 0;
  /// Whether a copy from this host memory may run late. If not, enqueueing it blocks the caller
  /// until the copy is almost or entirely done.
  [[nodiscard]] virtual bool copies_late(const void* host) const = 0;
  /// The device's source number in timelines; 0: a profiler records its streams.
  [[nodiscard]] virtual std::uint16_t timeline_source() const noexcept { return 0; }
  /// Returns the device time that the stream has spent on tasks so far.
  [[nodiscard]] virtual std::chrono::nanoseconds busy(StreamRole role) const = 0;
};

/// Options for opening a device.
struct DeviceOptions {
  /// Memory given to the device. Zero is the default: half of the machine's memory for cpu, all of
  /// its own for a GPU.
  Bytes memory{};
};

/// A device handle. The last owner closes the device, which waits for its streams.
class Device {
 public:
  /// Takes over a device that open_device does not know.
  explicit Device(std::unique_ptr<DeviceBackend> backend) : backend_(std::move(backend)) {}
  /// What a Pool needs. Valid as long as the device.
  [[nodiscard]] DeviceMemory memory() { return {backend_->upstream(), backend_->progress()}; }
  /// Returns the most that it could ever hand out.
  [[nodiscard]] Bytes total_memory() { return backend_->upstream().capacity(); }
  /// Returns the name that open_device accepts.
  [[nodiscard]] std::string name() const { return backend_->name(); }
  /// The implementation, for upper layers. Valid as long as the device.
  [[nodiscard]] DeviceBackend& backend() noexcept { return *backend_; }

 private:
  std::unique_ptr<DeviceBackend> backend_;
};

/// Opens a device: `cpu`; GPU `cuda` or `cuda:N`, number 0 or N; `auto`, a GPU if one is usable,
/// otherwise the cpu. Throws UsageError (one line with what to do) for any other name, an unusable
/// GPU, or more memory than there is.
[[nodiscard]] Device open_device(std::string_view name, const DeviceOptions& options = {});

}  // namespace weir
