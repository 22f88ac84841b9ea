#pragma once

// Records the memory levels of a replay over time, in a fixed number of columns.

#include <string>
#include <vector>

#include "tools/replay/measure/engine.hpp"

namespace weir::replay {

/// The highest levels within one column.
struct Levels {
  Bytes requested, allocated, reserved;

  friend bool operator==(const Levels&, const Levels&) = default;
};

class LevelColumns {
 public:
  /// Divides `operations` into at most `most` columns of about equal length.
  LevelColumns(std::uint64_t operations, std::size_t most);

  /// Steps must come in order.
  void add(const Step& step);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  /// Returns the columns that the replay reached; the list ends there.
  [[nodiscard]] const std::vector<Levels>& columns() const noexcept { return columns_; }
  /// Returns the number of all columns, also those that the replay did not reach.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }

 private:
  std::uint64_t operations_;
  std::size_t width_;
  std::vector<Levels> columns_;
};

}  // namespace weir::replay
