#pragma once

// The figures by which admission decides, of one pool or summed over several.

#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/bytes.hpp"
#include "allocator/pressure.hpp"
#include "allocator/statistics.hpp"

namespace weir {

/// Thread-safe. Does not own the pools. See Pool for each function.
class MemoryStatistics {
 public:
  MemoryStatistics() = default;
  MemoryStatistics(const MemoryStatistics&) = delete;
  MemoryStatistics& operator=(const MemoryStatistics&) = delete;

  /// Returns 1 + the GPU's ordinal, or 0 for no GPU.
  [[nodiscard]] virtual std::uint16_t device() const noexcept = 0;
  /// Returns held bytes and budget.
  [[nodiscard]] virtual Pressure pressure() const = 0;
  /// Returns all figures.
  [[nodiscard]] virtual Statistics statistics() const = 0;
  /// Returns the hard limit.
  [[nodiscard]] virtual Bytes budget() const = 0;
  /// Returns the `most` labels that hold the most, for people.
  [[nodiscard]] virtual std::string holders(std::size_t most) const = 0;
  /// Updates how far the device has come.
  virtual void poll() = 0;
  /// Tries to raise the hard limit to `budget`, if it comes from a source that may have more.
  /// Returns true if it is larger now. Waits for nobody. Call without a lock.
  virtual bool raise_budget_to(Bytes /*budget*/) noexcept { return false; }

 protected:
  ~MemoryStatistics() = default;
};

}  // namespace weir
