#include "scheduler/tensor.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {

Shape::Shape(std::initializer_list<std::size_t> extents) : dimensions_(extents.size()) {
  if (dimensions_ == 0 || dimensions_ > kMostDimensions) {
    throw UsageError("a shape has 1 to 4 extents, not " + std::to_string(dimensions_));
  }
  std::ranges::copy(extents, extents_.begin());
  std::size_t elements = 1;
  for (const std::size_t extent : extents) {
    if (extent == 0 || elements > SIZE_MAX / sizeof(float) / extent) {
      throw UsageError("shape " + to_string() +
                       " is not allowed: extents are above zero and the "
                       "bytes fit 64 bits");
    }
    elements *= extent;
  }
}

std::size_t Shape::elements() const noexcept {
  std::size_t elements = dimensions_ == 0 ? 0 : 1;
  for (std::size_t i = 0; i < dimensions_; ++i) elements *= extents_.at(i);
  return elements;
}

std::string Shape::to_string() const {
  std::string text;
  for (std::size_t i = 0; i < dimensions_; ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(extents_.at(i));
  }
  return text;
}

Tensor::Tensor(const Tensor& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}

Tensor::~Tensor() {
  if (state_ == nullptr) return;
  if (state_->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  state_->table->drop_handles(*state_);
}

std::size_t Tensor::handles() const noexcept {
  return state_ == nullptr ? 0 : state_->handles.load(std::memory_order_acquire);
}

const Shape& Tensor::shape() const {
  if (state_ == nullptr) throw UsageError("shape() of an empty tensor handle");
  return state_->shape;
}

}  // namespace weir
