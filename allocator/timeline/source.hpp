#pragma once

// The pools, schedulers and devices of a process. Each registers itself, so that a late recording
// and a live view find it.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "allocator/base/bytes.hpp"
#include "allocator/base/pressure.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

/// Sums for one device, for a live view.
struct DeviceFigures {
  std::uint16_t device = 0;  ///< 1 + the GPU's ordinal; 0: no GPU
  Bytes total;               ///< of the device; zero if unknown
  Bytes budget;              ///< shared by the pools of one GPU
  Bytes used;                ///< of the budget, by the pools and others
  Bytes allocated;
  Bytes awaiting;
  Bytes cached;
  Bytes reserved;
  std::uint64_t failures = 0;         ///< allocations that failed
  std::uint64_t waits = 0;            ///< of allocations, batches and launches
  std::chrono::nanoseconds waited{};  ///< total
  // The most that any of its pools has, of each:
  PressureLevel pressure{};
  PressureTimes at_pressure{};

  /// Raises them to these.
  void raise_pressure(PressureLevel level, const PressureTimes& times) noexcept {
    pressure = std::max(pressure, level);
    raise_each(at_pressure, times);
  }
};

/// Sums for a process, for a live view.
struct LiveFigures {
  static constexpr std::size_t kMostDevices = 16;

  Bytes budget;  ///< of device memory, as the next two
  Bytes requested;
  Bytes allocated;
  Bytes awaiting;
  Bytes cached;
  Bytes reserved;
  Bytes peak;                                         ///< highest reserved
  std::uint64_t failures = 0;                         ///< allocations that failed
  std::uint64_t open = 0;                             ///< batches
  std::uint64_t submitted = 0;                        ///< batches in flight
  std::uint64_t settled = 0;                          ///< completed batches
  std::uint64_t stalls = 0;                           ///< waits for admission
  std::chrono::nanoseconds stalled{};                 ///< total
  bool knows_busy = false;                            ///< whether a device measures busy time
  std::chrono::nanoseconds busy{};                    ///< of the devices' compute streams
  std::array<DeviceFigures, kMostDevices> devices{};  ///< those in use
  std::size_t device_count = 0;

  /// Returns the figures of `device`, new ones if missing; null: no room.
  [[nodiscard]] DeviceFigures* of(std::uint16_t device) noexcept;
};

/// Call `enlist` at the end of construction and `leave` before destruction. In between, any thread
/// may call it, under no lock of the source.
class TimelineSource {
 public:
  TimelineSource(const TimelineSource&) = delete;
  TimelineSource& operator=(const TimelineSource&) = delete;

  virtual void add_figures(LiveFigures& figures) const = 0;
  /// Writes what exists as a recording begins: kPool, kLive, kStream, kAdmit.
  virtual void record_live(TimelineSink& sink) = 0;

  /// Its number in the process, from 1.
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }

 protected:
  TimelineSource() noexcept;
  virtual ~TimelineSource() = default;
  void enlist();
  /// Unregisters and waits for calls to return. Idempotent.
  void leave() noexcept;

 private:
  const std::uint16_t number_;
};

/// Calls `visit` for each source. `visit` must not create or destroy one: none comes or goes
/// meanwhile. A fork waits for it (ForkGate in source.cpp).
void for_each_source(const std::function<void(TimelineSource&)>& visit);

}  // namespace weir
