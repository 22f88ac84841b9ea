#include "tools/replay/measure/level_columns.hpp"

#include <algorithm>

namespace weir::replay {

LevelColumns::LevelColumns(std::uint64_t operations, std::size_t most)
    : operations_(operations), width_(std::min<std::uint64_t>(operations, most)) {}

void LevelColumns::add(const Step& step) {
  const std::size_t column = step.operation * width_ / operations_;
  if (column >= columns_.size()) columns_.resize(column + 1);
  Levels& levels = columns_[column];
  levels.requested = std::max(levels.requested, step.requested);
  levels.allocated = std::max(levels.allocated, step.footprint.allocated);
  levels.reserved = std::max(levels.reserved, step.footprint.reserved);
}

}  // namespace weir::replay
