#pragma once

// The processor's own count of cache misses, where the system allows it.

#include <cstdint>
#include <optional>
#include <string>

namespace weir::bench {

/// Counts the misses of the thread that makes it, in the last level of its caches. Not thread-safe.
class CacheMisses {
 public:
  CacheMisses() noexcept;
  ~CacheMisses();
  CacheMisses(const CacheMisses&) = delete;
  CacheMisses& operator=(const CacheMisses&) = delete;

  /// Returns the misses so far; none if they are not counted.
  [[nodiscard]] std::optional<std::uint64_t> read() const noexcept;
  /// Returns the system's reason for not counting; empty if it counts.
  [[nodiscard]] std::string refusal() const;

 private:
  int descriptor_ = -1;
  int error_ = 0;
};

}  // namespace weir::bench
