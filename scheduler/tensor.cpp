#include "scheduler/tensor.hpp"

#include <algorithm>

#include "allocator/base/error.hpp"
#include "scheduler/tensor_table.hpp"

namespace weir {

void refuse_dtype(std::string_view what, DType has, DType asked) {
  throw UsageError(std::string(what) + " has elements of " + std::string(to_string(has)) +
                   ", used as " + std::string(to_string(asked)));
}

Shape::Shape(std::initializer_list<std::size_t> extents) : dimensions_(extents.size()) {
  if (dimensions_ == 0 || dimensions_ > kMostDimensions) {
    throw UsageError("a shape has 1 to 4 extents, not " + std::to_string(dimensions_));
  }
  std::ranges::copy(extents, extents_.begin());
  std::size_t elements = 1;
  for (const std::size_t extent : extents) {
    if (extent == 0 || elements > SIZE_MAX / kLargestElement / extent) {
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

Tensor::Tensor(const Tensor& other) noexcept
    : state_(other.state_), offset_(other.offset_), shape_(other.shape_), dtype_(other.dtype_) {
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
  return shape_;
}

DType Tensor::dtype() const {
  if (state_ == nullptr) throw UsageError("dtype() of an empty tensor handle");
  return dtype_;
}

Tensor Tensor::rows(std::size_t first, std::size_t count) const {
  const std::size_t all = shape()[0];
  if (count == 0 || first > all || count > all - first) {
    throw UsageError("rows: " + std::to_string(count) + " from row " + std::to_string(first) +
                     " on, of a tensor of " + shape_.to_string() +
                     ": at least one, and all of them in the tensor");
  }
  Shape part = shape_;
  part.extents_[0] = count;
  const Bytes row{bytes().count / all};
  return view(row * first, part, dtype_);
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (shape.elements() != this->shape().elements()) {
    throw UsageError("reshape: a tensor of " + shape_.to_string() + " has " +
                     std::to_string(shape_.elements()) + " elements, and " + shape.to_string() +
                     " are " + std::to_string(shape.elements()));
  }
  return view({}, shape, dtype_);
}

Tensor Tensor::view(Bytes offset, const Shape& shape, DType dtype) const {
  if (shape.dimensions() == 0) throw UsageError("view: a view needs a shape");
  const Bytes all = bytes();
  const Bytes size = shape.bytes(dtype);
  const auto describe = [&] {
    return "view: " + shape.to_string() + " of " + std::string(to_string(dtype)) + " from byte " +
           std::to_string(offset.count) + " on";
  };
  if (offset > all || size > all - offset) {
    throw UsageError(describe() + " are " + std::to_string(size.count) + " bytes, of " +
                     std::to_string(all.count));
  }
  // A tensor's memory is aligned for every dtype.
  const Bytes first = offset_ + offset;
  if (first.count % size_of(dtype) != 0) {
    throw UsageError(describe() + " begins at byte " + std::to_string(first.count) +
                     " of its tensor: allowed is a multiple of " + std::to_string(size_of(dtype)));
  }
  Tensor part(*this);
  part.offset_ = first;
  part.shape_ = shape;
  part.dtype_ = dtype;
  return part;
}

}  // namespace weir
