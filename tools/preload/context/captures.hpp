#pragma once

// The captures that are under way in this process, whatever context they began in. A stream joins
// one by waiting for an event of it, and may be of another context: so whether a stream is captured
// is the driver's to say, and it is asked while any capture is under way. With none that costs one
// load.

#include <atomic>
#include <cstdint>

#include "tools/preload/driver/driver.hpp"

namespace weir::preload {

/// A capture by the driver's number (cuStreamGetCaptureInfo), which no other one has while the
/// process lives. 0 is none.
using CaptureId = std::uint64_t;

/// The captures that programs began through the hooks. Thread-safe, lock-free.
class CapturesUnderWay {
 public:
  /// Whether any stream may be captured.
  [[nodiscard]] static bool any() noexcept {
    return under_way.load(std::memory_order_relaxed) != 0;
  }
  /// One is about to begin; `begin` or `withdraw` says what became of it.
  static void announce() noexcept { under_way.fetch_add(1); }
  static void withdraw() noexcept { under_way.fetch_sub(1); }
  /// Its number from now on; one of ours where the driver told none (0).
  [[nodiscard]] static CaptureId begin(CaptureId told) noexcept;
  static void end(CaptureId capture) noexcept;
  [[nodiscard]] static bool has(CaptureId capture) noexcept;
  /// There may be one that did not begin through the hooks: `any` is true from now on.
  static void expect_unknown() noexcept { under_way.fetch_or(kUnknown); }

 private:
  static constexpr std::uint64_t kUnknown = std::uint64_t{1} << 63U;
  inline static constinit std::atomic<std::uint64_t> under_way{0};
};

/// The default stream by its own name: of the calling thread, or the legacy one.
[[nodiscard]] inline CUstream named_stream(CUstream stream, bool per_thread) noexcept {
  if (stream != nullptr) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

/// Whether work on `stream`, a default one by its own name, becomes a part of a graph now. True as
/// well where the driver does not say: it is to answer the program's call itself.
[[nodiscard]] bool is_captured(const Driver& driver, CUstream stream) noexcept;

/// The capture that `stream` is a part of; 0 where it is of none, or the driver does not say.
[[nodiscard]] CaptureId capture_of(const Driver& driver, CUstream stream) noexcept;

/// The graph that is being captured from `stream`; null where that is not known.
[[nodiscard]] CUgraph captured_graph(const Driver& driver, CUstream stream) noexcept;

}  // namespace weir::preload
