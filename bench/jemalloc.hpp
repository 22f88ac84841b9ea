#pragma once

// jemalloc as a peer: its malloc and free, called where it stands, while this program's own malloc
// stays the C library's, so that what is measured of Weir is neither helped nor hurt by it.

#include <cstddef>

namespace weir::bench {

class Jemalloc {
 public:
  /// jemalloc's plain malloc and free.
  static void* (*const kMalloc)(std::size_t);
  static void (*const kFree)(void*);
  /// Whether malloc is still somebody else's.
  [[nodiscard]] static bool is_apart();

  /// An arena with the default settings that nobody else uses, so that what other benchmarks left
  /// behind does not matter. What was allocated in it is gone with it.
  class Arena {
   public:
    Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    /// The calling thread allocates from this arena until `leave`.
    void enter();
    void leave();

   private:
    unsigned arena_ = 0;
    unsigned before_ = 0;
  };
};

}  // namespace weir::bench
