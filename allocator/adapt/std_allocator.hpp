#pragma once

/// @file
/// The memory of a HostMemoryResource for containers that take an allocator, such as std::vector.

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>

#include "allocator/adapt/host_memory_resource.hpp"

namespace weir {

/// Like std::pmr::polymorphic_allocator, but a moved or swapped container takes its allocator
/// along, so that no element is copied. A copy of a container allocates where the original does; a
/// container that is assigned to keeps its own resource.
///
///   std::vector<float, StdAllocator<float>> numbers{StdAllocator<float>{resource}};
///
/// The resource must outlive it. Thread-safe.
template <typename T>
class StdAllocator {
 public:
  using value_type = T;                                            ///< what a container holds
  using propagate_on_container_copy_assignment = std::false_type;  ///< see the class
  using propagate_on_container_move_assignment = std::true_type;   ///< see the class
  using propagate_on_container_swap = std::true_type;              ///< see the class
  using is_always_equal = std::false_type;                         ///< resources differ

  /// Allocates from `resource`.
  explicit StdAllocator(HostMemoryResource& resource) noexcept : resource_(&resource) {}
  /// Allocates for another type from the same resource.
  template <typename Other>
  StdAllocator(const StdAllocator<Other>& other) noexcept  // NOLINT(google-explicit-constructor)
      : resource_(&other.resource()) {}

  /// Allocates `count` objects, without constructing them. Throws HostOutOfMemory, or
  /// std::bad_array_new_length if their size does not fit.
  [[nodiscard]] T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
      throw std::bad_array_new_length();
    }
    return static_cast<T*>(resource_->allocate(count * sizeof(T), alignof(T)));
  }
  /// Frees what `allocate(count)` returned.
  void deallocate(T* pointer, std::size_t count) {
    resource_->deallocate(pointer, count * sizeof(T), alignof(T));
  }
  /// Returns where it allocates.
  [[nodiscard]] HostMemoryResource& resource() const noexcept { return *resource_; }

  /// True if one may free what the other allocated.
  template <typename Other>
  friend bool operator==(const StdAllocator& one, const StdAllocator<Other>& other) noexcept {
    return one.resource() == other.resource();
  }

 private:
  HostMemoryResource* resource_;
};

}  // namespace weir
