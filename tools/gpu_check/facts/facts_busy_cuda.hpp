#pragma once

// A stream that is busy while something else is asked.

#include <atomic>
#include <chrono>

#include "tools/gpu_check/facts/facts_driver_cuda.hpp"

namespace weir::gpu_check {

/// What a stream is busy with: a driver may wait for one and not for the other.
enum class BusyWith { kHostFunction, kKernel };

/// A stream that has something to do for a tenth of a second, or until this ends. Each ends by its
/// own clock, also where a driver runs the host functions of all streams one after the other, or
/// returns from a launch only at its end; then it is not busy any more when it is asked.
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
