#pragma once

// How failures of tests, and their list, show a pattern. Found by argument-dependent lookup.

#include <ostream>

#include "bench/stress/patterns.hpp"

namespace weir::bench {

inline std::ostream& operator<<(std::ostream& out, const Pattern& pattern) {
  return out << pattern.name;
}

}  // namespace weir::bench
