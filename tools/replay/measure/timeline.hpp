#pragma once

// How much memory a trace and a subject had over time, in as many columns as are drawn.

#include <string>
#include <vector>

#include "tools/replay/measure/engine.hpp"

namespace weir::replay {

/// The highest levels in one column's operations.
struct Levels {
  Bytes requested, allocated, reserved;

  friend bool operator==(const Levels&, const Levels&) = default;
};

class Timeline {
 public:
  /// Of `operations`, in at most `most` columns of about as many operations each.
  Timeline(std::uint64_t operations, std::size_t most);

  /// Steps come in order.
  void add(const Step& step);

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  /// Those that a replay came to; the others would be behind the end of the list.
  [[nodiscard]] const std::vector<Levels>& columns() const noexcept { return columns_; }
  /// All columns, whether the replay came to them or not.
  [[nodiscard]] std::size_t width() const noexcept { return width_; }

 private:
  std::uint64_t operations_;
  std::size_t width_;
  std::vector<Levels> columns_;
};

}  // namespace weir::replay
