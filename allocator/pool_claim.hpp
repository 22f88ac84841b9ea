#pragma once

#include "allocator/pool.hpp"

namespace weir {

/// Ends a growth's claim on the budget, whatever came of it.
class Pool::Claim {
 public:
  Claim(Pool& pool, Bytes size) noexcept : pool_(pool), size_(size) {}
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  ~Claim() {
    Lock lock(pool_.mutex_);
    pool_.growing_ -= size_;
    --pool_.transits_;
    ++pool_.transits_ended_;
    const News changes = pool_.news();
    lock.unlock();
    pool_.tell(changes);
  }

 private:
  Pool& pool_;
  const Bytes size_;
};

}  // namespace weir
