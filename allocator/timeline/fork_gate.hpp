#pragma once

// Keeps forks apart from looks at what a process has.

namespace weir {

/// A look at pools takes their locks. A child that was forked meanwhile would find them taken for
/// ever. So a fork waits for looks under way, and looks wait for a fork; neither for more than a
/// tenth of a second, since the program comes first. Thread-safe.
class ForkGate {
 public:
  /// Before the first look. Without it no fork waits.
  static void install() noexcept;

  /// The scope of a look. Looks may overlap.
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
