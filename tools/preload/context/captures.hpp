#pragma once

// The captures in progress in this process, in any context. A stream joins one by waiting for one
// of its events, even from another context. So only the driver knows whether a stream is captured;
// we ask while any capture is in progress. Without one this costs one load.

#include <atomic>
#include <cstdint>

#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// A capture by the driver's number (cuStreamGetCaptureInfo), unique in the process. 0 is none.
using CaptureId = std::uint64_t;

/// The captures that programs began through the hooks. Thread-safe, lock-free.
class CapturesUnderWay {
 public:
  /// Returns whether any stream may be captured.
  [[nodiscard]] static bool any() noexcept {
    return under_way.load(std::memory_order_relaxed) != 0;
  }
  /// Call before a capture begins; then call `begin` or `withdraw`.
  static void announce() noexcept { under_way.fetch_add(1); }
  static void withdraw() noexcept { under_way.fetch_sub(1); }
  /// Records the capture's number and returns it; makes one up if the driver reported none (0).
  [[nodiscard]] static CaptureId begin(CaptureId told) noexcept;
  static void end(CaptureId capture) noexcept;
  [[nodiscard]] static bool has(CaptureId capture) noexcept;
  /// Call if a capture may begin outside the hooks: `any` stays true from now on.
  static void expect_unknown() noexcept { under_way.fetch_or(kUnknown); }

 private:
  static constexpr std::uint64_t kUnknown = std::uint64_t{1} << 63U;
  inline static constinit std::atomic<std::uint64_t> under_way{0};
};

/// Returns the explicit handle of a default stream: the calling thread's or the legacy one.
[[nodiscard]] inline CUstream named_stream(CUstream stream, bool per_thread) noexcept {
  if (stream != nullptr) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// Returns whether work on `stream` (default streams by explicit handle) is being captured. True if
/// the driver does not say: it then answers the program's call itself.
[[nodiscard]] bool is_captured(const Driver& driver, CUstream stream) noexcept;

/// Returns the capture that `stream` is part of; 0 if none or unknown.
[[nodiscard]] CaptureId capture_of(const Driver& driver, CUstream stream) noexcept;

/// Returns the graph being captured from `stream`; null if unknown.
[[nodiscard]] CUgraph captured_graph(const Driver& driver, CUstream stream) noexcept;

}  // namespace weir::preload
