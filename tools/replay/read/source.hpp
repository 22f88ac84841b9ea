#pragma once

// The bytes of a trace's file, unpacked where they are gzip's.

#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::replay {

struct Source {
  std::string name;  ///< for what is said of it
  std::string bytes;
  std::string cut;  ///< why the bytes end early; empty when all are there
};

/// How long a line of text may be. No trace has longer ones; a file of zeros is one line.
inline constexpr Bytes kLongestLine = mib(1);

/// What a file may have, packed or unpacked: half of the machine's memory, and at most 8 GiB.
[[nodiscard]] Bytes most_bytes();

/// Reads `path`, a regular file, or standard input where it is `-`. UsageError, naming the file,
/// when it is another kind of file, cannot be read, is broken in the middle, or has more than
/// `most_bytes`; one that ends early is what there is of it.
[[nodiscard]] Source read_source(const std::string& path);

/// The same of bytes that were read. Those that are not gzip's are left as they are.
[[nodiscard]] Source unpack(std::string name, std::string bytes, Bytes most = most_bytes());

}  // namespace weir::replay
