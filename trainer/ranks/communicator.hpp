#pragma once

/// @file
/// What several ranks of one training run do together. The same calls, with the same sizes and in
/// the same order, must be made on every rank; a rank makes one call at a time. So submit all
/// operations that call this to one stream: `kRanksStream`.
///
/// Bytes that one rank sends for a call, of R ranks. Functions: shards.hpp.
/// @verbatim
///   all_reduce of n floats    4 (n − s + (R − 1) s), s: this rank's share, n R⁻¹ rounded
///   all_gather of n floats    4 n (R − 1)
///   broadcast of n bytes      n (R − 1) on rank 0, else 0
///   gather_all of n bytes     n on ranks > 0; n R (R − 1) on rank 0
///   barrier                   a gather_all of 1 byte
/// @endverbatim

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "scheduler/device/stream.hpp"

namespace weir {

/// The stream for operations that call a Communicator: beside the backward pass, and one alone, so
/// that the order of calls is the order of submissions.
inline constexpr StreamRole kRanksStream = StreamRole::kCompute2;

/// What this rank sent so far.
struct Traffic {
  std::uint64_t calls = 0;  ///< all calls but `finish`, from the first one of the owner on
  std::uint64_t bytes = 0;  ///< payload; without heartbeats and the engine's own headers
  /// Both must be equal.
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// Not thread-safe, except `traffic` and `abort`. A rank that dies, or fails and unwinds without
/// `finish`, ends all others: each prints one line that names it, and exits with 1.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Without an earlier `finish`, the other ranks end.
  virtual ~Communicator() = default;

  /// Returns this rank's number, from 0 on.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  /// Returns the number of ranks.
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Returns what carries the calls, for people: `Open MPI`, `MPICH`, `NCCL 2.21.5`, `one rank`.
  [[nodiscard]] virtual std::string engine() const = 0;

  /// Host memory; returns when done. Replaces `bytes` by those of rank 0.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// Host memory; returns when done. `all` gets every rank's `mine`, in the order of ranks:
  /// all.size() == size() * mine.size().
  virtual void gather_all(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Returns when every rank is in it.
  virtual void barrier() = 0;

  /// Memory of the stream's device, in stream order. Replaces each part by its sum over the ranks.
  /// On the CPU added in the order of ranks, so every rank gets the same bits each time.
  virtual void all_reduce(Stream& stream, std::span<const std::span<float>> parts) = 0;
  /// Memory of the stream's device, in stream order. As gather_all.
  virtual void all_gather(Stream& stream, std::span<const float> mine, std::span<float> all) = 0;

  /// Returns what this rank sent. Thread-safe.
  [[nodiscard]] virtual Traffic traffic() const noexcept = 0;
  /// Waits for the other ranks' `finish`; then none needs another. All operations that call this
  /// must be done: see Scheduler::wait_all. Only the destructor may follow.
  virtual void finish() = 0;
  /// Ends every rank: each prints one line with this rank and `reason`. Exits with 1. Thread-safe.
  [[noreturn]] virtual void abort(std::string_view reason) noexcept = 0;
};

}  // namespace weir
