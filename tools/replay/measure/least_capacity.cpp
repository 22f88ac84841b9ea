#include "tools/replay/measure/least_capacity.hpp"

#include <algorithm>

namespace weir::replay {

std::optional<LeastCapacity> least_capacity(const CapacitySearch& search,
                                            const std::function<bool(Bytes)>& completes) {
  LeastCapacity least;
  const auto tried = [&](Bytes capacity) {
    ++least.tries;
    if (completes(capacity)) {
      least.capacity = capacity;
      return true;
    }
    least.failed = capacity;
    return false;
  };

  if (search.low > search.most) return std::nullopt;
  if (tried(search.low)) return least;
  Bytes high = std::clamp(search.high, search.low, search.most);
  while (high == search.low || !tried(high)) {
    if (high == search.most) return std::nullopt;
    high = minus_or_zero(search.most, high) > high ? high * 2 : search.most;
  }
  while (least.capacity - least.failed > search.step) {
    (void)tried({least.failed.count + (least.capacity - least.failed).count / 2});
  }
  return least;
}

}  // namespace weir::replay
