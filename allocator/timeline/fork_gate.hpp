#pragma once

namespace weir {

/// Separates forks from looks at the pools: a look takes locks, which would stay locked in a child.
/// Each waits for the other, at most a tenth of a second, since the program comes first.
/// Thread-safe.
class ForkGate {
 public:
  /// Call before the first look, or no fork waits.
  static void install() noexcept;

  /// Looks may overlap.
  class Look {
   public:
    Look() noexcept;
    ~Look();
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    bool entered_;
  };
};

}  // namespace weir
