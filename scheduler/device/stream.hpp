#pragma once

/// @file
/// The streams of a device and what they execute.

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/base/names.hpp"
#include "allocator/progress/progress.hpp"
#include "scheduler/device/signal.hpp"

namespace weir {

/// What a stream is for. Every device has one stream of each role.
enum class StreamRole : std::uint8_t {
  kCompute,   ///< operations, by default
  kCompute2,  ///< more operations, in parallel
  kCopyIn,    ///< from host memory: Scheduler::copy_in
  kCopyOut,   ///< to host memory: Scheduler::read
};
inline constexpr std::size_t kStreamRoles = 4;  ///< number of roles
/// All roles, in order.
inline constexpr std::array<StreamRole, kStreamRoles> kAllRoles{
    StreamRole::kCompute, StreamRole::kCompute2, StreamRole::kCopyIn, StreamRole::kCopyOut};

/// Returns its place in kAllRoles.
[[nodiscard]] constexpr std::size_t index_of(StreamRole role) noexcept {
  return static_cast<std::size_t>(role);
}
/// The names in messages.
[[nodiscard]] constexpr auto names_of(StreamRole /*of*/) noexcept {
  return name_table("compute", "compute-2", "copy-in", "copy-out");
}

/// The stream that a submitted closure enqueues on.
class Stream {
 public:
  /// Made by its device.
  Stream(StreamId id, StreamRole role) noexcept : id_(id), role_(role) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  [[nodiscard]] StreamId id() const noexcept { return id_; }        ///< unique
  [[nodiscard]] StreamRole role() const noexcept { return role_; }  ///< its purpose
  /// Copies in stream order between host and device memory, in either direction, or within the
  /// device.
  virtual void copy(void* to, const void* from, Bytes size) = 0;
  /// Gives `signal` in stream order: once what was enqueued before is done. The signal must live
  /// until then. This body is for a stream that runs closures late, on a thread of its own.
  virtual void give(Signal& signal) { signal.give(); }
  /// Lets what is enqueued after this wait for `signal`, without blocking the submitter. Work that
  /// is already enqueued, on whatever device, must give it: then the wait ends.
  virtual void await(Signal& signal) { signal.wait(); }

 private:
  const StreamId id_;
  const StreamRole role_;
};

/// Describes a task, for timelines.
struct TaskInfo {
  std::string_view name{};      ///< of the operation
  const char* file = "";        ///< where it was submitted
  int line = 0;                 ///< line in `file`; 0: unknown
  std::uint32_t batch = 0;      ///< its number; 0: none
  std::uint64_t operation = 0;  ///< its number; 0: submitted while nothing was recorded
  Bytes bytes{};                ///< bytes that it writes
};

/// When the device ran a task, as far as the host knows.
struct TaskTime {
  std::chrono::nanoseconds device_time{};  ///< that it took
  /// From the end of the stream's task before until its begin; zero for the first.
  std::chrono::nanoseconds gap{};
  /// The part of the gap in which nothing was enqueued. In the rest the stream waited for others.
  std::chrono::nanoseconds starved{};
  std::chrono::steady_clock::time_point end{};  ///< on the host's clock
};

/// One unit of work on a stream.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;
  /// Enqueues its work on `stream`, on a thread that serves the device.
  virtual void run(Stream& stream) noexcept = 0;
  /// Describes the task. Valid until `finished`.
  [[nodiscard]] virtual TaskInfo info() const noexcept { return {}; }
  /// Called after `run` when the device is done. The stream's point is passed only after this
  /// returns. The task may be gone then.
  virtual void finished(const TaskTime& time) noexcept = 0;
};

/// Whether the calling thread serves a device. Such a thread must not submit or wait: it could wait
/// for work queued behind itself.
[[nodiscard]] bool on_device_thread() noexcept;

}  // namespace weir
