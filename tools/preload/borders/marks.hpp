#pragma once

#include <cstdint>

namespace weir::preload {

/// The nested scopes that one thread has open, each with whether it stands for a batch. It holds no
/// memory and needs no constructor to run, so that it can be a thread's own in a preloaded library.
class Marks {
 public:
  /// Whether what is pushed next would be remembered: it would not, more than 64 scopes deep.
  [[nodiscard]] bool remembers() const noexcept { return depth_ < kRemembered; }
  /// Opens a scope; its level, from 0.
  std::uint32_t push(bool marked) noexcept {
    if (remembers()) {
      const std::uint64_t bit = std::uint64_t{1} << depth_;
      marked_ = marked ? marked_ | bit : marked_ & ~bit;
    }
    return depth_++;
  }
  /// Closes the innermost scope: whether it was marked. No where none is open.
  bool pop() noexcept {
    if (depth_ == 0) return false;
    --depth_;
    return remembers() && (marked_ >> depth_ & 1U) != 0;
  }
  /// How many scopes are open.
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }

 private:
  static constexpr std::uint32_t kRemembered = 64;

  std::uint64_t marked_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace weir::preload
