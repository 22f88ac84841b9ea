#pragma once

/// @file
/// The streams of a device and what they execute.

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "allocator/base/bytes.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

/// What a stream is for. Every device has one stream of each role.
enum class StreamRole : std::uint8_t {
  kCompute,   ///< operations, unless told otherwise
  kCompute2,  ///< operations beside those
  kCopyIn,    ///< from host memory: Scheduler::copy_in
  kCopyOut,   ///< to host memory: Scheduler::read
};
inline constexpr std::size_t kStreamRoles = 4;  ///< how many there are
/// Each of them, in order.
inline constexpr std::array<StreamRole, kStreamRoles> kAllRoles{
    StreamRole::kCompute, StreamRole::kCompute2, StreamRole::kCopyIn, StreamRole::kCopyOut};

/// Its place in kAllRoles.
[[nodiscard]] constexpr std::size_t index_of(StreamRole role) noexcept {
  return static_cast<std::size_t>(role);
}
/// A short name, for messages.
[[nodiscard]] std::string_view to_string(StreamRole role) noexcept;

/// What a submitted closure sees of the stream that it enqueues on.
class Stream {
 public:
  /// Made by its device.
  Stream(StreamId id, StreamRole role) noexcept : id_(id), role_(role) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  [[nodiscard]] StreamId id() const noexcept { return id_; }        ///< never another stream's
  [[nodiscard]] StreamRole role() const noexcept { return role_; }  ///< what it is for
  /// Copies in stream order between host and device memory, either way.
  virtual void copy(void* to, const void* from, Bytes size) = 0;

 private:
  const StreamId id_;
  const StreamRole role_;
};

/// What a task is, for timelines.
struct TaskInfo {
  std::string_view name{};      ///< of the operation
  const char* file = "";        ///< where it was submitted
  int line = 0;                 ///< in `file`; 0: not known
  std::uint32_t batch = 0;      ///< its number; 0: none
  std::uint64_t operation = 0;  ///< its number; 0: submitted when nobody recorded
  Bytes bytes{};                ///< that it writes
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
  /// What it is; valid until `finished`.
  [[nodiscard]] virtual TaskInfo info() const noexcept { return {}; }
  /// Called after `run` when the device is done with it, with the device time that it took. The
  /// stream's point is passed only after this returns; the task may be gone then.
  virtual void finished(std::chrono::nanoseconds device_time) noexcept = 0;
};

/// Whether the calling thread serves a device. Such a thread may neither submit nor wait: what it
/// would wait for may be behind itself.
[[nodiscard]] bool on_device_thread() noexcept;

}  // namespace weir
