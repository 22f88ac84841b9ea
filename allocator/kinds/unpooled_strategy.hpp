#pragma once

#include <new>

#include "allocator/kinds/segment_strategy.hpp"

namespace weir {

/// `unpooled`: returns memory once the device has passed its free.
class UnpooledStrategy final : public SegmentStrategy {
 public:
  using SegmentStrategy::SegmentStrategy;

  [[nodiscard]] Block* grow(Attempt& request) override {
    trim({});
    return SegmentStrategy::grow(request);
  }
  [[nodiscard]] Block* make_room(Attempt& request) override {
    trim({});
    return SegmentStrategy::make_room(request);
  }
  void after_free() override {
    try {
      trim({});
    } catch (const std::bad_alloc&) {
      // The block is freed; the next call returns its memory.
    }
  }
};

}  // namespace weir
