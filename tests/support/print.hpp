#pragma once

// How failures of tests print our types. Found by argument-dependent lookup, so every test of one
// program includes it or none does.

#include <ostream>

#include "allocator/base/bytes.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/progress/progress.hpp"

namespace weir {

inline std::ostream& operator<<(std::ostream& out, Bytes bytes) {
  return out << bytes.count << " bytes";
}
inline std::ostream& operator<<(std::ostream& out, StreamId stream) {
  return out << "stream " << stream.value;
}
inline std::ostream& operator<<(std::ostream& out, Point point) {
  return out << point.sequence << " on " << point.stream;
}
inline std::ostream& operator<<(std::ostream& out, PoolKind kind) { return out << to_string(kind); }
inline std::ostream& operator<<(std::ostream& out, const BudgetRequest& request) {
  return out << format_budget(request);
}

}  // namespace weir
