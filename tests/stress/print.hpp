#pragma once

// How failures and lists of tests print a pattern. Found by argument-dependent lookup.

#include <ostream>

#include "bench/stress/patterns.hpp"

namespace weir::bench {

inline std::ostream& operator<<(std::ostream& out, const Pattern& pattern) {
  return out << pattern.name;
}

}  // namespace weir::bench
