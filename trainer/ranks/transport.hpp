#pragma once

/// @file
/// Messages between two ranks: what the collective calls on the CPU are made of.

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/ranks/launch.hpp"

namespace weir {

/// Messages from one rank to another with one tag arrive in the order in which they were sent. One
/// thread at a time.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Returns this rank's number.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  /// Returns the number of ranks.
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Starts to send; `bytes` must not change until `progress` returned true. `tag` is from 0 to
  /// kMostTag, and at most kMostMessage bytes are one message. Throws Error.
  virtual void send(std::span<const std::byte> bytes, int to, int tag) = 0;
  /// Starts to receive a message of exactly this size, as above.
  virtual void receive(std::span<std::byte> bytes, int from, int tag) = 0;
  /// Moves messages on. Returns whether everything started is done. Does not wait. Throws Error.
  [[nodiscard]] virtual bool progress() = 0;
  /// Returns the ranks that something started still waits for, ascending.
  [[nodiscard]] virtual std::vector<int> waits_for() const = 0;
  /// Ends the engine, after the last message of every rank.
  virtual void finish() = 0;
};

/// MPI promises tags up to this number (MPI 4.0, 9.1.2, MPI_TAG_UB).
inline constexpr int kMostTag = 32767;
/// Far below the 2^31 − 1 that a count of MPI can be.
inline constexpr std::size_t kMostMessage = std::size_t{1} << 30U;

/// Opens the library of `launcher` (Open MPI or MPICH) and starts MPI, which may happen once in a
/// process. Throws UsageError if there is no such library, and Error if MPI does not start. Its
/// destructor leaves MPI as it is unless `finish` was called: after a failure, MPI's own end waits
/// for ranks that do not come.
[[nodiscard]] std::unique_ptr<Transport> open_mpi(Launcher launcher);

/// Returns `time` as a message shows it: "2.5 s", cut to tenths.
[[nodiscard]] inline std::string in_seconds(std::chrono::nanoseconds time) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace weir
