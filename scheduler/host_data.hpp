#pragma once

/// @file
/// Elements in host memory, on their way to a tensor or from one.

#include <concepts>
#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

#include "allocator/base/bytes.hpp"
#include "scheduler/dtype.hpp"

namespace weir {

/// A range of elements that lie one behind the other: a vector, an array, a span.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    Element<std::ranges::range_value_t<Range>>;

/// Elements to read. Refers to the range that it is made of, which must outlive it.
class HostData {
 public:
  HostData() = default;
  /// Refers to `range`.
  template <ElementRange Range>
  HostData(const Range& range) noexcept
      : HostData(std::ranges::data(range), std::ranges::size(range)) {}
  /// Refers to `elements` elements from `first` on.
  template <Element T>
  HostData(const T* first, std::size_t elements) noexcept
      : data_(first), elements_(elements), dtype_(DTypeOf<T>::kValue) {}
  /// Refers to memory of any type as elements of `dtype`.
  HostData(const void* first, std::size_t elements, DType dtype) noexcept
      : data_(first), elements_(elements), dtype_(dtype) {}

  [[nodiscard]] const void* data() const noexcept { return data_; }      ///< the first element
  [[nodiscard]] std::size_t size() const noexcept { return elements_; }  ///< number of elements
  [[nodiscard]] bool empty() const noexcept { return elements_ == 0; }   ///< whether there is none
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }          ///< of the elements
  /// Returns the bytes of all elements.
  [[nodiscard]] Bytes bytes() const noexcept { return {elements_ * size_of(dtype_)}; }

 private:
  const void* data_ = nullptr;
  std::size_t elements_ = 0;
  DType dtype_ = DType::kFloat32;
};

/// Room for elements. Refers to the range that it is made of, which must outlive it.
class HostRoom {
 public:
  /// Refers to `range`, whose elements are not const.
  template <ElementRange Range>
  requires(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>)
      HostRoom(Range& range)
  noexcept : HostRoom(std::span(range)) {}
  /// Refers to the elements of `span`.
  template <Element T, std::size_t Extent>
  HostRoom(std::span<T, Extent> span) noexcept
      : data_(span.data()), elements_(span.size()), dtype_(DTypeOf<T>::kValue) {}

  [[nodiscard]] void* data() const noexcept { return data_; }            ///< the first element
  [[nodiscard]] std::size_t size() const noexcept { return elements_; }  ///< number of elements
  [[nodiscard]] bool empty() const noexcept { return elements_ == 0; }   ///< whether there is none
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }          ///< of the elements
  /// Returns the bytes of all elements.
  [[nodiscard]] Bytes bytes() const noexcept { return {elements_ * size_of(dtype_)}; }

 private:
  void* data_;
  std::size_t elements_;
  DType dtype_;
};

}  // namespace weir
