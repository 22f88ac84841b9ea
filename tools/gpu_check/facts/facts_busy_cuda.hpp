#pragma once

// A stream that stays busy during a question.

#include <atomic>
#include <chrono>

#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {

/// What keeps a stream busy. A driver may wait for one and not for the other.
enum class BusyWith { kHostFunction, kKernel };

/// Keeps a stream busy for a tenth of a second or until destruction. Ends by its own clock, since a
/// driver may run host functions of all streams in turn, or return from a launch only at its end:
/// the stream is then idle by the time of the question.
class BusyStream {
 public:
  BusyStream(const Driver& driver, BusyWith with);
  ~BusyStream();
  BusyStream(const BusyStream&) = delete;
  BusyStream& operator=(const BusyStream&) = delete;

  [[nodiscard]] bool is_busy() const;
  [[nodiscard]] CUstream get() const { return stream_.get(); }

  static constexpr auto kLongest = std::chrono::milliseconds(100);

 private:
  static void run(void* self);

  const Driver& driver_;
  const Stream stream_;
  std::atomic<bool> released_ = false;
};

}  // namespace weir::gpu_check
