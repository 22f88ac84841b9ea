#pragma once

// Computes what the program's waits for the device cost, by call site.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

struct BarrierSite {
  std::string site{};  ///< `trainer/loop.py:88`; `unknown place`
  std::string call{};  ///< `read`, `wait`, `wait_all`, or a profiler's name
  std::uint64_t count = 0;
  std::uint64_t waited = 0;   ///< sum over threads
  std::uint64_t longest = 0;  ///< the longest wait
  std::uint64_t idle_in = 0;  ///< idle time of the device while a thread waited
  /// Idle time of the device from the end of a wait to the next work or the next barrier's end.
  std::uint64_t idle_after = 0;
};
/// Returns call sites by descending `idle_after`, then `waited`, then site. A barrier without a
/// known device counts for all devices, each with its own idle time.
[[nodiscard]] std::vector<BarrierSite> barriers(const Index& index);
/// `trainer/loop.py:88 read 41 times, 3.20 s of device idle after it`.
[[nodiscard]] std::string describe(const BarrierSite& site);

}  // namespace weir::timeline
