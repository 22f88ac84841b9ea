#pragma once

// jemalloc as a peer. Calls its malloc and free directly, while this program's own malloc stays the
// C library's, so that jemalloc affects no measurement of Weir.

#include <cstddef>

namespace weir::bench {

class Jemalloc {
 public:
  /// jemalloc's plain malloc and free.
  static void* (*const kMalloc)(std::size_t);
  static void (*const kFree)(void*);
  /// Returns whether malloc is not jemalloc's.
  [[nodiscard]] static bool is_apart();

  /// A private arena with default settings, so that other benchmarks leave no traces in it. Its
  /// destructor frees everything allocated in it.
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
