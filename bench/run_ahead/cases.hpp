#pragma once

// Programs that run ahead of a device with two compute streams: what each batch takes, drawn anew
// for each seed and the same under each limit.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "bench/simulate/jitter.hpp"

namespace weir::run_ahead {

using simulate::Random;
using simulate::Time;

/// One batch: a copy, then a compute on the first stream, then one on the second. Computes of zero
/// time are left out, and the first that is there waits for the copy.
struct CaseBatch {
  Time load{};     ///< host time before it is begun
  Time before{};   ///< host time before its copy is enqueued
  Time between{};  ///< host time from there until its computes are enqueued
  Time copy{};
  Time first{};
  Time second{};
  Bytes memory{};  ///< held until the device is done with it
  std::string kind = "train";
  bool read = false;        ///< the host waits for the device after it
  bool new_thread = false;  ///< it is begun on a thread of its own
  bool linked = false;      ///< `second` runs on another device, on a copy; only in real time
};

struct Case {
  std::string_view name;
  std::string_view about;
  std::size_t producers = 1;
  /// Draws batch `index` of `producer`.
  CaseBatch (*draw)(Random& random, std::uint64_t index, std::size_t producer);
};

/// Returns all, or those that run on simulated time.
[[nodiscard]] std::vector<const Case*> cases(bool real);

/// Returns `count` batches for each producer. A run has as many of all producers together.
[[nodiscard]] std::vector<std::vector<CaseBatch>> draw(const Case& of, std::uint64_t count,
                                                       std::uint64_t seed);

}  // namespace weir::run_ahead
