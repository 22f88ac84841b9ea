#pragma once

// Patterns by name, and how failures and lists of tests print one.

#include <algorithm>
#include <ostream>

#include "bench/stress/patterns.hpp"

namespace weir::bench {

inline std::ostream& operator<<(std::ostream& out, const Pattern& pattern) {
  return out << pattern.name;
}

inline replay::Trace pattern(std::string_view name, const PatternOptions& options) {
  return std::ranges::find(patterns(), name, &Pattern::name)->make(options);
}

}  // namespace weir::bench
