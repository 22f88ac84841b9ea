#pragma once

/// @file
/// A device: memory, how far its streams have come, and streams that execute tasks in order. The
/// scheduler above is the same for every device.

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

/// What a kind of device implements. Thread-safe.
class DeviceBackend {
 public:
  DeviceBackend() = default;
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  /// As open_device knows it.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Its raw memory; lives as long as the device.
  [[nodiscard]] virtual Upstream& upstream() = 0;
  /// Host memory that copies to and from the device use while they run late: pinned where the
  /// device needs that.
  [[nodiscard]] virtual Upstream& host_upstream() = 0;
  /// How far its streams have come; lives as long as the device.
  [[nodiscard]] virtual Progress& progress() = 0;
  /// The id of the stream that has this role.
  [[nodiscard]] virtual StreamId stream(StreamRole role) const = 0;
  /// Enqueues and returns the sequence that the stream's point has once the task is done. The task
  /// stays valid until its `finished`. A throw enqueued nothing. One call at a time for each
  /// stream.
  virtual std::uint64_t enqueue(StreamRole role, Task& task) = 0;
  /// Whether `enqueue` runs the task, and with it a closure of the user's, before it returns.
  /// Otherwise it only queues the task, which takes next to no time.
  [[nodiscard]] virtual bool runs_in_enqueue() const noexcept = 0;
  /// Returns when every task is finished, whatever became of its work; nobody may enqueue
  /// meanwhile. A device that failed finishes its tasks, too. Not from a thread that serves the
  /// device.
  virtual void drain() noexcept = 0;
  /// Whether a copy from this host memory may run late. Where it may not, enqueueing it holds the
  /// caller until it is done, or nearly.
  [[nodiscard]] virtual bool copies_late(const void* host) const = 0;
  /// The number that its streams have as a source of timelines; 0: a profiler tells what they do.
  [[nodiscard]] virtual std::uint16_t timeline_source() const noexcept { return 0; }
  /// Device time that the stream has spent executing tasks so far.
  [[nodiscard]] virtual std::chrono::nanoseconds busy(StreamRole role) const = 0;
};

/// What a device can be told when it is opened.
struct DeviceOptions {
  /// What the device is given; zero leaves it to the device (cpu: half of the machine's memory, a
  /// GPU: all of its own).
  Bytes memory{};
};

/// A device by value: opened by name, closed with its last owner. Closing waits for its streams.
class Device {
 public:
  /// Takes a device over; for devices that open_device does not know.
  explicit Device(std::unique_ptr<DeviceBackend> backend) : backend_(std::move(backend)) {}
  /// What a Pool needs of it; valid as long as the device is.
  [[nodiscard]] DeviceMemory memory() { return {backend_->upstream(), backend_->progress()}; }
  /// All that it could ever hand out.
  [[nodiscard]] Bytes total_memory() { return backend_->upstream().capacity(); }
  /// As open_device knows it.
  [[nodiscard]] std::string name() const { return backend_->name(); }
  /// The implementation, for what is above; valid as long as the device is.
  [[nodiscard]] DeviceBackend& backend() noexcept { return *backend_; }

 private:
  std::unique_ptr<DeviceBackend> backend_;
};

/// Opens a device: `cpu`; `cuda` or `cuda:N`, GPU number 0 or N; `auto`, a GPU where one answers
/// and the cpu otherwise. UsageError, one line with what to do, for any other name, for a GPU that
/// is not there or cannot be used, and for more memory than there is.
[[nodiscard]] Device open_device(std::string_view name, const DeviceOptions& options = {});

}  // namespace weir
