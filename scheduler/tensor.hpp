#pragma once

/// @file
/// Tensors as users hold them. A Tensor is a counted handle to device memory, or to a part of it: a
/// view. The memory is allocated with the first writer and freed in stream order with the last
/// handle, however late the device is.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "allocator/base/bytes.hpp"
#include "scheduler/dtype.hpp"

namespace weir {

struct TensorState;

/// Up to four extents, row-major. Throws UsageError for more, for none, and for an extent of zero.
class Shape {
 public:
  static constexpr std::size_t kMostDimensions = 4;  ///< maximum number of extents

  Shape() = default;
  /// Outermost first. Throws UsageError as above, and if the bytes of that many int64 exceed 64
  /// bits. So no product of a shape and a dtype overflows.
  Shape(std::initializer_list<std::size_t> extents);

  /// Returns the number of extents; zero for a default-constructed shape.
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
  /// Returns the `i`-th extent; std::out_of_range from kMostDimensions on.
  [[nodiscard]] std::size_t operator[](std::size_t i) const { return extents_.at(i); }
  /// Returns the product of the extents; zero if there are none.
  [[nodiscard]] std::size_t elements() const noexcept;
  /// Returns the bytes of that many elements.
  [[nodiscard]] Bytes bytes(DType dtype = DType::kFloat32) const noexcept {
    return {elements() * size_of(dtype)};
  }
  [[nodiscard]] std::string to_string() const;  ///< `1024x512`
  /// Compares the extents.
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  friend class Tensor;
  std::array<std::size_t, kMostDimensions> extents_{};
  std::size_t dimensions_ = 0;
};

/// A handle to elements on a device. Copies share the tensor; one thread at a time may use a
/// handle. Made by Scheduler::empty and Scheduler::copy_in.
///
/// A view is a handle to a part of a tensor, or to the same bytes in another shape or dtype. Every
/// call takes views. They share more than the memory:
/// - A write of a view is a write of its tensor: operations on any part of a tensor are ordered as
///   if each used all of it, and the first one that writes a part gives all of it memory, not
///   cleared.
/// - An error is the whole tensor's. It ends with a write of all of it; an operation that writes a
///   part of a lost tensor is skipped.
/// - The memory is there as long as any handle, of the whole or of a part.
class Tensor {
 public:
  Tensor() = default;
  /// Another handle to the same tensor.
  Tensor(const Tensor& other) noexcept;
  /// Leaves `other` an empty handle.
  Tensor(Tensor&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)),
        offset_(other.offset_),
        shape_(other.shape_),
        dtype_(other.dtype_) {}
  /// Drops its own tensor.
  Tensor& operator=(Tensor other) noexcept {
    std::swap(state_, other.state_);
    offset_ = other.offset_;
    shape_ = other.shape_;
    dtype_ = other.dtype_;
    return *this;
  }
  /// The last handle of a tensor frees its memory, in stream order and without waiting. Allowed on
  /// any thread at any time, even during and after the scheduler's destruction.
  ~Tensor();

  /// Whether it refers to a tensor.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Throws UsageError for an empty handle.
  [[nodiscard]] const Shape& shape() const;
  /// Returns the type of the elements. Throws UsageError for an empty handle.
  [[nodiscard]] DType dtype() const;
  /// Returns the bytes of all elements. Throws UsageError for an empty handle.
  [[nodiscard]] Bytes bytes() const { return shape().bytes(dtype()); }
  /// Returns how many handles the tensor has, views included; zero for an empty one. Other threads
  /// may change it.
  [[nodiscard]] std::size_t handles() const noexcept;

  // Views. None waits for anything, and the tensor need not be written yet.
  /// Returns a view of `count` of the outermost extent, from `first` on: for a matrix, rows. Throws
  /// UsageError unless there are as many, and for none.
  [[nodiscard]] Tensor rows(std::size_t first, std::size_t count) const;
  /// Returns a view of all elements in another shape. Throws UsageError unless it has as many.
  [[nodiscard]] Tensor reshape(const Shape& shape) const;
  /// Returns a view of the bytes from `offset` on, as elements of `dtype`. Throws UsageError if it
  /// would end behind this one, or if its first byte in the tensor is not a multiple of the
  /// element's size.
  [[nodiscard]] Tensor view(Bytes offset, const Shape& shape, DType dtype) const;
  /// Returns a view of all its bytes, as kUInt8 with one extent.
  [[nodiscard]] Tensor as_bytes() const { return view({}, {bytes().count}, DType::kUInt8); }

  /// Whether both refer to the same elements, in the same shape and dtype, or to none.
  friend bool operator==(const Tensor& a, const Tensor& b) noexcept {
    if (a.state_ != b.state_) return false;
    return a.state_ == nullptr ||
           (a.offset_ == b.offset_ && a.shape_ == b.shape_ && a.dtype_ == b.dtype_);
  }

 private:
  friend class DeviceLink;
  friend class Operation;
  friend class Scheduler;
  Tensor(TensorState& state, const Shape& shape, DType dtype) noexcept
      : state_(&state), shape_(shape), dtype_(dtype) {}

  TensorState* state_ = nullptr;
  Bytes offset_{};  ///< of its first element in the tensor
  Shape shape_;
  DType dtype_ = DType::kFloat32;
};

}  // namespace weir
