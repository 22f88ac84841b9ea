#pragma once

#include <new>

#include "allocator/kinds/segment_strategy.hpp"

namespace weir {

/// Keeps nothing: `unpooled`. What is freed goes back as soon as the device has passed it.
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
      // It is freed all the same; the next call gives back what this one could not.
    }
  }
};

}  // namespace weir
