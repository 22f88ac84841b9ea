#pragma once

/// @file
/// Where in the program a call was made, for messages.

namespace weir {

/// Where a call was made; the default argument of what wants to know its caller.
struct CallSite {
  const char* file = "";  ///< as the compiler was told it
  int line = 0;           ///< from 1; 0 is unknown
  /// As a default argument: where the call that leaves it out stands.
  // Not std::source_location: clang 14 cannot parse libstdc++'s, and clang-tidy is clang.
  [[nodiscard]] static constexpr CallSite here(const char* file = __builtin_FILE(),
                                               int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

}  // namespace weir
