#pragma once

// Reads the bytes of a trace file and unpacks gzip.

#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

struct Source {
  std::string name;  ///< for messages
  std::string bytes;
  std::string cut;  ///< why the bytes end early; empty if complete
};

/// The longest accepted line. No trace has longer ones; a file of zeros is one line.
inline constexpr Bytes kLongestLine = mib(1);

/// The largest accepted size, packed or unpacked: half of the machine's memory, at most 8 GiB.
[[nodiscard]] Bytes most_bytes();

/// Reads `path`, a regular file, or standard input if it is `-`. Throws UsageError naming the file
/// if it is another kind of file, cannot be read, is corrupt, or exceeds `most_bytes`. Returns what
/// is there of a truncated file.
[[nodiscard]] Source read_source(const std::string& path);

/// Unpacks bytes in memory. Leaves bytes that are not gzip unchanged.
[[nodiscard]] Source unpack(std::string name, std::string bytes, Bytes most = most_bytes());

}  // namespace weir::replay
