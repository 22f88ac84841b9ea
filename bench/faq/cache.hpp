#pragma once

// Whether queued batches cost cache misses: a batch is copied, others are copied behind it, and
// only then an operation reads the first.

#include <cstdint>
#include <optional>
#include <string>

#include "allocator/base/bytes.hpp"

namespace weir::bench {

enum class CacheOperation : std::uint8_t {
  kAdd,      ///< adds the batch to a sum of its size: bound by memory
  kProduct,  ///< multiplies it by a matrix of 512 x 512: bound by arithmetic
};

struct CacheCase {
  CacheOperation operation = CacheOperation::kAdd;
  Bytes batch{};            ///< a multiple of 2 KiB, which is a row
  std::uint64_t depth = 1;  ///< batches that are copied before the first operation
};

struct CacheFigures {
  double seconds = 0;              ///< of one operation on its processor, the mean
  std::optional<double> misses{};  ///< of one operation, the mean; none if not counted
  std::string refusal{};           ///< why they are not counted
};

/// Runs `operations` on a cpu device of its own, `depth` at a time.
[[nodiscard]] CacheFigures run_cache(const CacheCase& what, std::uint64_t operations);

}  // namespace weir::bench
