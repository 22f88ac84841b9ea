#pragma once

/// @file
/// The figures by which admission decides: of one pool, or the sums over several.

#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/pressure.hpp"
#include "allocator/statistics.hpp"

namespace weir {

/// Thread-safe. See Pool for what each function returns. Whoever holds one owns no pool.
class MemoryStatistics {
 public:
  MemoryStatistics() = default;
  MemoryStatistics(const MemoryStatistics&) = delete;
  MemoryStatistics& operator=(const MemoryStatistics&) = delete;

  /// 1 + the ordinal of the GPU whose memory it is; 0: none.
  [[nodiscard]] virtual std::uint16_t device() const noexcept = 0;
  /// Held bytes and budget.
  [[nodiscard]] virtual Pressure pressure() const = 0;
  /// All figures.
  [[nodiscard]] virtual Statistics statistics() const = 0;
  /// The hard limit.
  [[nodiscard]] virtual Bytes budget() const = 0;
  /// The `most` labels that hold the most, for people.
  [[nodiscard]] virtual std::string holders(std::size_t most) const = 0;
  /// Learns how far the device has come.
  virtual void poll() = 0;

 protected:
  ~MemoryStatistics() = default;
};

}  // namespace weir
