#include "allocator/base/mutex.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir {

void detail::refuse_lock(LockRank rank, std::uint32_t held) noexcept {
  std::fprintf(stderr, "weir: lock of rank %u taken while holding ranks %#x\n",
               static_cast<unsigned>(rank), held);
  std::abort();
}

}  // namespace weir
