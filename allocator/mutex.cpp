#include "allocator/mutex.hpp"

#include <cstdio>
#include <cstdlib>

namespace weir {
namespace {

thread_local std::uint32_t held_ranks = 0;

}  // namespace

std::uint32_t held_lock_ranks() noexcept { return held_ranks; }

void Mutex::lock() {
  const auto rank = static_cast<unsigned>(rank_);
  if ((held_ranks >> rank) != 0) {
    std::fprintf(stderr, "weir: lock of rank %u taken while holding ranks %#x\n", rank, held_ranks);
    std::abort();
  }
  mutex_.lock();
  held_ranks |= 1U << rank;
}

void Mutex::unlock() {
  held_ranks &= ~(1U << static_cast<unsigned>(rank_));
  mutex_.unlock();
}

}  // namespace weir
