#include "allocator/progress/progress.hpp"

#include <atomic>

namespace weir {

StreamId StreamId::next(std::uint64_t count) noexcept {
  static std::atomic<std::uint64_t> last{0};
  return {last.fetch_add(count, std::memory_order_relaxed) + 1};
}

}  // namespace weir
