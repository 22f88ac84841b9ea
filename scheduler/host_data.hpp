#pragma once

/// @file
/// Elements in host memory, on their way to a tensor or from one.

#include <concepts>
#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/base/error.hpp"
#include "scheduler/dtype.hpp"

namespace weir {

/// A range of elements that lie one behind the other: a vector, an array, a span.
template <typename Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    Element<std::ranges::range_value_t<Range>>;

/// Elements to read, for the call in which this is made. What the call does with the memory depends
/// on what this is made of:
///
///   copy_in(x, shape)             copies `x` before it returns
///   copy_in(std::move(x), shape)  keeps the vector until the device is done; so for a temporary
///   copy_in(borrowed(x), shape)   leaves `x` to the caller until then: see `borrowed`
class HostData {
 public:
  HostData() = default;
  /// Copied. So is a temporary that is a view or an array.
  template <ElementRange Range>
  HostData(const Range& range) noexcept
      : HostData(std::ranges::data(range), std::ranges::size(range)) {}
  /// Taken over, if a copy from it may run late; otherwise copied, and `vector` stays as it is. A
  /// call that is refused (UsageError) leaves it, too; one that runs out of memory may have taken
  /// it. A vector of an allocator with state is copied: what the allocator refers to may end first.
  template <Element T, typename Allocator>
  requires(std::allocator_traits<Allocator>::is_always_equal::value)
      HostData(std::vector<T, Allocator>&& vector)
  noexcept : HostData(vector.data(), vector.size()) {
    vector_ = &vector;
    take_ = [](void* taken, const void* first) -> std::shared_ptr<const void> {
      using Vector = std::vector<T, Allocator>;
      auto& own = *static_cast<Vector*>(taken);
      if (own.data() != first) throw UsageError("host data: another call took the vector over");
      return std::make_shared<const Vector>(std::move(own));
    };
  }
  /// `elements` elements from `first` on, copied.
  template <Element T>
  HostData(const T* first, std::size_t elements) noexcept
      : HostData(first, elements, DTypeOf<T>::kValue) {}
  /// Memory of any type as elements of `dtype`, copied.
  HostData(const void* first, std::size_t elements, DType dtype) noexcept
      : data_(first), elements_(elements), dtype_(dtype) {}

  [[nodiscard]] const void* data() const noexcept { return data_; }      ///< the first element
  [[nodiscard]] std::size_t size() const noexcept { return elements_; }  ///< number of elements
  [[nodiscard]] bool empty() const noexcept { return elements_ == 0; }   ///< whether there is none
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }          ///< of the elements
  /// Returns the bytes of all elements.
  [[nodiscard]] Bytes bytes() const noexcept { return {elements_ * size_of(dtype_)}; }

 private:
  friend class Scheduler;
  friend HostData borrowed(const void* first, std::size_t elements, DType dtype) noexcept;

  /// Whether the memory stays as it is until the device is done.
  [[nodiscard]] bool may_copy_late() const noexcept { return borrowed_ || take_ != nullptr; }
  /// Takes over the vector, and returns what keeps the elements where they are; null if it is
  /// borrowed. Throws UsageError the second time.
  [[nodiscard]] std::shared_ptr<const void> take() const {
    return take_ != nullptr ? take_(vector_, data_) : nullptr;
  }

  const void* data_ = nullptr;
  std::size_t elements_ = 0;
  DType dtype_ = DType::kFloat32;
  bool borrowed_ = false;
  void* vector_ = nullptr;                                                  ///< to take over
  std::shared_ptr<const void> (*take_)(void* vector, const void* first){};  ///< set with `vector_`
};

/// Returns elements that the caller lends: a copy from them may run late, straight from there.
/// Until it is done (`Scheduler::reached(Scheduler::written(tensor))`, or a wait for the tensor)
/// the elements must neither change nor end, also after a call that throws. Saves a copy on the
/// host where the device copies late from such memory: any memory for the cpu device, page-locked
/// memory for a GPU.
[[nodiscard]] inline HostData borrowed(const void* first, std::size_t elements,
                                       DType dtype) noexcept {
  HostData lent(first, elements, dtype);
  lent.borrowed_ = true;
  return lent;
}
/// The same for the elements of `range`. Does not compile for a temporary that owns its elements.
template <ElementRange Range>
requires std::ranges::borrowed_range<Range>
[[nodiscard]] HostData borrowed(Range&& range) noexcept {  // NOLINT(*-missing-std-forward)
  return borrowed(std::ranges::data(range), std::ranges::size(range),
                  DTypeOf<std::ranges::range_value_t<Range>>::kValue);
}

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
