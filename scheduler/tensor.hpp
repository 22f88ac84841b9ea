#pragma once

/// @file
/// Tensors as users hold them. A Tensor is a counted handle to device memory. The memory is
/// allocated with the first writer and freed in stream order with the last handle, however late the
/// device is.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

#include "allocator/base/bytes.hpp"

namespace weir {

struct TensorState;

/// Up to four extents, row-major. Throws UsageError for more, for none, and for an extent of zero.
class Shape {
 public:
  static constexpr std::size_t kMostDimensions = 4;  ///< maximum number of extents

  Shape() = default;
  /// Outermost first. Throws UsageError as above, and if the bytes exceed 64 bits.
  Shape(std::initializer_list<std::size_t> extents);

  /// Returns the number of extents; zero for a default-constructed shape.
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
  /// Returns the `i`-th extent; std::out_of_range from kMostDimensions on.
  [[nodiscard]] std::size_t operator[](std::size_t i) const { return extents_.at(i); }
  /// Returns the product of the extents; zero if there are none.
  [[nodiscard]] std::size_t elements() const noexcept;
  /// Returns the bytes of that many float32.
  [[nodiscard]] Bytes bytes() const noexcept { return {elements() * sizeof(float)}; }
  [[nodiscard]] std::string to_string() const;  ///< `1024x512`
  /// Compares the extents.
  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::size_t, kMostDimensions> extents_{};
  std::size_t dimensions_ = 0;
};

/// A handle to float32 elements on a device. Copies share the tensor; one thread at a time may use
/// a handle. Made by Scheduler::empty and Scheduler::copy_in.
class Tensor {
 public:
  Tensor() = default;
  /// Another handle to the same tensor.
  Tensor(const Tensor& other) noexcept;
  /// Leaves `other` an empty handle.
  Tensor(Tensor&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  /// Drops its own tensor.
  Tensor& operator=(Tensor other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  /// The last handle of a tensor frees its memory, in stream order and without waiting. Allowed on
  /// any thread at any time, even during and after the scheduler's destruction.
  ~Tensor();

  /// Whether it refers to a tensor.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Throws UsageError for an empty handle.
  [[nodiscard]] const Shape& shape() const;
  /// Returns how many handles the tensor has; zero for an empty one. Other threads may change it.
  [[nodiscard]] std::size_t handles() const noexcept;
  /// Whether both refer to the same tensor, or to none.
  friend bool operator==(const Tensor& a, const Tensor& b) noexcept { return a.state_ == b.state_; }

 private:
  friend class DeviceLink;
  friend class Scheduler;
  explicit Tensor(TensorState& state) noexcept : state_(&state) {}

  TensorState* state_ = nullptr;
};

}  // namespace weir
