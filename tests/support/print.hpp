#pragma once

// How failures of tests show our types. Found by argument-dependent lookup, so every test of one
// program includes it or none does.

#include <ostream>

#include "allocator/bytes.hpp"
#include "allocator/pool_options.hpp"
#include "allocator/progress.hpp"

namespace weir {

inline void PrintTo(Bytes bytes, std::ostream* out) { *out << bytes.count << " bytes"; }
inline void PrintTo(StreamId stream, std::ostream* out) { *out << "stream " << stream.value; }
inline void PrintTo(Point point, std::ostream* out) {
  *out << point.sequence << " on stream " << point.stream.value;
}
inline void PrintTo(PoolKind kind, std::ostream* out) { *out << to_string(kind); }
inline void PrintTo(const BudgetRequest& request, std::ostream* out) {
  *out << format_budget(request);
}

}  // namespace weir
