#pragma once

/// @file
/// What is submitted: a closure that enqueues work on a stream, stored without the general heap,
/// and the views of memory that it receives.

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "scheduler/device/stream.hpp"
#include "scheduler/dtype.hpp"

namespace weir {

/// The elements of one tensor, row-major.
struct View {
  void* data = nullptr;           ///< on the device
  std::size_t elements = 0;       ///< number of elements
  DType dtype = DType::kFloat32;  ///< their type
  /// Returns the bytes of all elements.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return elements * size_of(dtype); }
};

/// Throws UsageError unless `view`, number `i` of the `list` of an operation, has this dtype.
inline void require_dtype(const View& view, DType asked, const char* list, std::size_t i) {
  if (view.dtype != asked)
    refuse_dtype(std::string(list) + " " + std::to_string(i), view.dtype, asked);
}

/// The tensors that an operation reads, in the order of `Uses::reads`. Valid during the call.
class Inputs {
 public:
  /// Refers to `views`, which must outlive it.
  explicit Inputs(std::span<const View> views) noexcept : views_(views) {}
  /// Returns the elements of the `i`-th tensor read, row-major. `i` is not checked. Throws
  /// UsageError if they are not float32.
  [[nodiscard]] std::span<const float> operator[](std::size_t i) const { return as<float>(i); }
  /// Returns the elements of the `i`-th tensor read, row-major. `i` is not checked. Throws
  /// UsageError if they are not of this type.
  template <Element T>
  [[nodiscard]] std::span<const T> as(std::size_t i) const {
    const View& view = views_[i];
    require_dtype(view, DTypeOf<T>::kValue, "input", i);
    return {static_cast<const T*>(view.data), view.elements};
  }
  /// Returns the bytes of the `i`-th tensor read, whatever its dtype. `i` is not checked.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t i) const noexcept {
    return {static_cast<const std::byte*>(views_[i].data), views_[i].size()};
  }
  /// Returns the dtype of the `i`-th tensor read. `i` is not checked.
  [[nodiscard]] DType dtype(std::size_t i) const noexcept { return views_[i].dtype; }
  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const noexcept { return views_.size(); }

 private:
  std::span<const View> views_;
};

/// The tensors that an operation writes, in the order of `Uses::writes`. Valid during the call.
class Outputs {
 public:
  /// Refers to `views`, which must outlive it.
  explicit Outputs(std::span<const View> views) noexcept : views_(views) {}
  /// Returns the elements of the `i`-th tensor written, row-major. `i` is not checked. New memory
  /// is not cleared. Throws UsageError if they are not float32.
  [[nodiscard]] std::span<float> operator[](std::size_t i) const { return as<float>(i); }
  /// Returns the elements of the `i`-th tensor written, row-major. `i` is not checked. Throws
  /// UsageError if they are not of this type.
  template <Element T>
  [[nodiscard]] std::span<T> as(std::size_t i) const {
    const View& view = views_[i];
    require_dtype(view, DTypeOf<T>::kValue, "output", i);
    return {static_cast<T*>(view.data), view.elements};
  }
  /// Returns the bytes of the `i`-th tensor written, whatever its dtype. `i` is not checked.
  [[nodiscard]] std::span<std::byte> bytes(std::size_t i) const noexcept {
    return {static_cast<std::byte*>(views_[i].data), views_[i].size()};
  }
  /// Returns the dtype of the `i`-th tensor written. `i` is not checked.
  [[nodiscard]] DType dtype(std::size_t i) const noexcept { return views_[i].dtype; }
  /// Returns the number of tensors.
  [[nodiscard]] std::size_t size() const noexcept { return views_.size(); }

 private:
  std::span<const View> views_;
};

/// A move-only closure `void(Stream&, Inputs, Outputs)` of at most kCapacity bytes, stored in
/// place. It must not own tensors: captured tensors would be held until the device runs it.
class Kernel {
 public:
  static constexpr std::size_t kCapacity = 160;  ///< maximum size of the captures

  Kernel() = default;
  /// Moves `closure` in. Does not compile if it is too large or its move may throw.
  template <typename Closure>
  requires(!std::same_as<Closure, Kernel> && std::invocable<Closure&, Stream&, Inputs, Outputs>)
      Kernel(Closure closure)
      : functions_(&kFunctions<Closure>) {
    static_assert(sizeof(Closure) <= kCapacity, "capture less: the closure is kept in place");
    static_assert(alignof(Closure) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<Closure>);
    ::new (static_cast<void*>(storage_)) Closure(std::move(closure));
  }
  /// Leaves `other` empty.
  Kernel(Kernel&& other) noexcept { take(other); }
  /// Drops its own closure; leaves `other` empty.
  Kernel& operator=(Kernel&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { reset(); }

  /// Whether it holds a closure.
  [[nodiscard]] explicit operator bool() const noexcept { return functions_ != nullptr; }
  /// Calls the closure, which must exist. An exception becomes the error of the outputs.
  void operator()(Stream& stream, Inputs inputs, Outputs outputs) {
    functions_->invoke(storage_, stream, inputs, outputs);
  }
  /// Drops the closure.
  void reset() noexcept {
    if (functions_ != nullptr) std::exchange(functions_, nullptr)->destroy(storage_);
  }

 private:
  struct Functions {
    void (*invoke)(void*, Stream&, Inputs, Outputs);
    void (*move)(void* to, void* from) noexcept;
    void (*destroy)(void*) noexcept;
  };
  template <typename Closure>
  static constexpr Functions kFunctions{
      [](void* closure, Stream& stream, Inputs in, Outputs out) {
        (*static_cast<Closure*>(closure))(stream, in, out);
      },
      [](void* to, void* from) noexcept {
        ::new (to) Closure(std::move(*static_cast<Closure*>(from)));
      },
      [](void* closure) noexcept { std::destroy_at(static_cast<Closure*>(closure)); }};

  void take(Kernel& other) noexcept {
    if (other.functions_ != nullptr) other.functions_->move(storage_, other.storage_);
    functions_ = other.functions_;
    other.reset();
  }

  const Functions* functions_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[kCapacity];
};

}  // namespace weir
