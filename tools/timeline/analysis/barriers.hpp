#pragma once

// What the program's own waits for the device cost, by where they stand.

#include <cstdint>
#include <string>
#include <vector>

#include "tools/timeline/analysis/index.hpp"

namespace weir::timeline {

struct BarrierSite {
  std::string site{};  ///< `trainer/loop.py:88`; `unknown place`
  std::string call{};  ///< `read`, `wait`, `wait_all`, or a profiler's name
  std::uint64_t count = 0;
  std::uint64_t waited = 0;   ///< by threads, in all
  std::uint64_t longest = 0;  ///< one wait
  std::uint64_t idle_in = 0;  ///< device idle while a thread waited
  /// Device idle from the end of a wait to the next work or to the next barrier's end.
  std::uint64_t idle_after = 0;
};
/// The one with the most idle after it first, alike ones by waited, then by site. A barrier whose
/// device is not told counts for all devices, each one's idle time for itself.
[[nodiscard]] std::vector<BarrierSite> barriers(const Index& index);
/// `trainer/loop.py:88 read 41 times, 3.20 s of device idle after it`.
[[nodiscard]] std::string describe(const BarrierSite& site);

}  // namespace weir::timeline
