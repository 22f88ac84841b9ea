#pragma once

#include <cstdint>

namespace weir::preload {

/// One thread's nested open scopes, each with a flag that says whether it stands for a batch. Has
/// no heap memory and no constructor, so a preloaded library can keep it thread-local.
class Marks {
 public:
  /// Whether the next push would be remembered; not beyond 64 levels.
  [[nodiscard]] bool remembers() const noexcept { return depth_ < kRemembered; }
  /// Opens a scope and returns its level, from 0.
  std::uint32_t push(bool marked) noexcept {
    if (remembers()) {
      const std::uint64_t bit = std::uint64_t{1} << depth_;
      marked_ = marked ? marked_ | bit : marked_ & ~bit;
    }
    return depth_++;
  }
  /// Closes the innermost scope and returns its mark; false if none is open.
  bool pop() noexcept {
    if (depth_ == 0) return false;
    --depth_;
    return remembers() && (marked_ >> depth_ & 1U) != 0;
  }
  /// Returns the number of open scopes.
  [[nodiscard]] std::uint32_t depth() const noexcept { return depth_; }

 private:
  static constexpr std::uint32_t kRemembered = 64;

  std::uint64_t marked_ = 0;
  std::uint32_t depth_ = 0;
};

}  // namespace weir::preload
