#pragma once

// The place of a call, for messages.

namespace weir {

/// A default argument of functions that report their caller.
struct CallSite {
  const char* file = "";  ///< as passed to the compiler
  int line = 0;           ///< from 1; 0: unknown
  /// As a default argument: returns the place of the call.
  // Not std::source_location: clang 14, and so clang-tidy, cannot parse libstdc++'s.
  [[nodiscard]] static constexpr CallSite here(const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}  // namespace weir
