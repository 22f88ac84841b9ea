#pragma once

/// @file
/// What a process has that can be looked at from outside: its pools, schedulers and devices. Each
/// registers itself, so that a recording that begins late, and a live view, find them all.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "allocator/base/bytes.hpp"
#include "allocator/timeline/sink.hpp"

namespace weir {

/// Sums over the sources that use one device, for a live view.
struct DeviceFigures {
  std::uint16_t device = 0;  ///< 1 + the GPU's ordinal; 0: none
  Bytes total;               ///< of the device; zero where nobody says
  Bytes budget;              ///< of it: pools of one GPU share it
  Bytes used;                ///< taken of the budget, by the pools and past them
  Bytes allocated;
  Bytes awaiting;
  Bytes cached;
  Bytes reserved;
  std::uint64_t failures = 0;         ///< allocations that nothing could serve
  std::uint64_t waits = 0;            ///< of allocations, batches and launches
  std::chrono::nanoseconds waited{};  ///< in all
};

/// Sums over the sources of a process, for a live view.
struct LiveFigures {
  static constexpr std::size_t kMostDevices = 16;

  Bytes budget;     ///< of device memory
  Bytes requested;  ///< of device memory, as are the next
  Bytes allocated;
  Bytes awaiting;
  Bytes cached;
  Bytes reserved;
  Bytes peak;                                         ///< the most that was reserved
  std::uint64_t failures = 0;                         ///< allocations that nothing could serve
  std::uint64_t open = 0;                             ///< batches
  std::uint64_t submitted = 0;                        ///< batches in flight
  std::uint64_t settled = 0;                          ///< batches that are done
  std::uint64_t stalls = 0;                           ///< waits for admission
  std::chrono::nanoseconds stalled{};                 ///< in all
  bool knows_busy = false;                            ///< a device says how long it was busy
  std::chrono::nanoseconds busy{};                    ///< of the devices' compute streams
  std::array<DeviceFigures, kMostDevices> devices{};  ///< those that some source uses
  std::size_t device_count = 0;

  /// The figures of `device`, added where it has none yet; null where there is no room for them.
  [[nodiscard]] DeviceFigures* of(std::uint16_t device) noexcept;
};

/// One of them. Registers at its construction's end (`enlist`) and leaves before its destruction
/// begins (`leave`): the calls below are made in between, from any thread, under no lock of its
/// own.
class TimelineSource {
 public:
  TimelineSource(const TimelineSource&) = delete;
  TimelineSource& operator=(const TimelineSource&) = delete;

  /// Adds what it knows.
  virtual void add_figures(LiveFigures& figures) const = 0;
  /// Writes what is there already, for a recording that begins now: kPool, kLive, kStream, kAdmit.
  virtual void record_live(TimelineSink& sink) = 0;

  /// Its number in the process, from 1.
  [[nodiscard]] std::uint16_t number() const noexcept { return number_; }

 protected:
  TimelineSource() noexcept;
  virtual ~TimelineSource() = default;
  void enlist();
  /// Returns when no call to it is under way. Does nothing the second time.
  void leave() noexcept;

 private:
  const std::uint16_t number_;
};

/// Calls `visit` for each source that is enlisted, one after the other. No source comes or goes
/// meanwhile: `visit` must not make or end one. A fork of the process waits for it: fork_gate.hpp.
void for_each_source(const std::function<void(TimelineSource&)>& visit);

}  // namespace weir
