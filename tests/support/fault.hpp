#pragma once

// A failure on demand: which of the coming calls fail.

#include <cstdint>

namespace weir::testing {

class Fault {
 public:
  Fault() = default;

  /// The n-th call from now, counted from 1, and the `count` − 1 that follow it.
  [[nodiscard]] static Fault at(std::uint64_t n, std::uint64_t count = 1) { return {n - 1, count}; }
  [[nodiscard]] static Fault always() { return {0, UINT64_MAX}; }
  [[nodiscard]] static Fault never() { return {}; }

  /// Counts one call. Returns true if it must fail.
  [[nodiscard]] bool strikes() {
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  Fault(std::uint64_t skip, std::uint64_t count) : skip_(skip), left_(count) {}

  std::uint64_t skip_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace weir::testing
