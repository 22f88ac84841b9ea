#pragma once

// The bytes of a trace's file, unpacked where they are gzip's.

#include <string>

#include "allocator/bytes.hpp"

namespace weir::replay {

struct Source {
  std::string name;  ///< for what is said of it
  std::string bytes;
  std::string cut;  ///< why the bytes end early; empty when all are there
};

/// What a file may unpack to.
inline constexpr Bytes kMostUnpacked = gib(8);

/// Reads `path`. UsageError when it cannot be read or is broken in the middle; one that ends early
/// is what there is of it.
[[nodiscard]] Source read_source(const std::string& path);

/// The same of bytes that were read. Those that are not gzip's are left as they are.
[[nodiscard]] Source unpack(std::string name, std::string bytes, Bytes most = kMostUnpacked);

}  // namespace weir::replay
