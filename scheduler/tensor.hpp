#pragma once

/// @file
/// Tensors as users hold them: a name for memory of the device. A Tensor is a counted handle; its
/// memory comes with its first writer, and goes, in stream order, with the last handle, however
/// late the device is.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "allocator/base/bytes.hpp"

namespace weir {

struct TensorState;

/// Up to four extents, row-major. UsageError for more, for none, and for an extent of zero.
class Shape {
 public:
  static constexpr std::size_t kMostDimensions = 4;  ///< extents at most

  Shape() = default;
  /// Outermost first. UsageError as above, and when the bytes do not fit 64 bits.
  Shape(std::initializer_list<std::size_t> extents);

  /// How many extents; zero for a shape that was default-constructed.
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
  /// The `i`-th extent; std::out_of_range from kMostDimensions on.
  [[nodiscard]] std::size_t operator[](std::size_t i) const { return extents_.at(i); }
  /// The product of the extents; zero without any.
  [[nodiscard]] std::size_t elements() const noexcept;
  /// Of that many float32.
  [[nodiscard]] Bytes bytes() const noexcept { return {elements() * sizeof(float)}; }
  [[nodiscard]] std::string to_string() const;  ///< `1024x512`
  /// The same extents.
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::size_t, kMostDimensions> extents_{};
  std::size_t dimensions_ = 0;
};

/// A handle to float32 elements on a device. Copies share the tensor; the handle itself is used by
/// one thread at a time, as any value. Made by Scheduler::empty and Scheduler::copy_in.
class Tensor {
 public:
  Tensor() = default;
  /// Another handle to the same tensor.
  Tensor(const Tensor& other) noexcept;
  /// Leaves `other` an empty handle.
  Tensor(Tensor&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  /// Lets its own tensor go.
  Tensor& operator=(Tensor other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  /// The last handle of a tensor frees its memory, in stream order and without waiting. On any
  /// thread and at any time, also while the tensor's scheduler is destroyed, and after that.
  ~Tensor();

  /// Whether it is a handle to a tensor.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// UsageError for an empty handle.
  [[nodiscard]] const Shape& shape() const;

 private:
  friend class Scheduler;
  explicit Tensor(TensorState& state) noexcept : state_(&state) {}

  TensorState* state_ = nullptr;
};

}  // namespace weir
