#pragma once

// A queue in one piece of memory that doubles when full: at its full length it allocates nothing.
// Not thread-safe.

#include <cstddef>
#include <utility>
#include <vector>

namespace weir {

template <typename T>
class Ring {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == end_; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - first_; }
  /// The `i`-th from the front, unchecked.
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return at(first_ + i); }
  [[nodiscard]] T& front() noexcept { return at(first_); }
  [[nodiscard]] T& back() noexcept { return at(end_ - 1); }

  /// Strong guarantee: throws only for lack of memory.
  void push_back(T value) {
    reserve_one();
    at(end_++) = std::move(value);
  }
  /// The next push_back does not throw.
  void reserve_one() { reserve(1); }
  /// The next `more` push_backs do not throw.
  void reserve(std::size_t more) {
    while (items_.size() - size() < more) grow();
  }
  T pop_front() noexcept { return std::move(at(first_++)); }

 private:
  [[nodiscard]] T& at(std::size_t place) noexcept { return items_[place & (items_.size() - 1)]; }

  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (std::size_t i = first_; i != end_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
    items_ = std::move(larger);
  }

  std::vector<T> items_ = std::vector<T>(64);  ///< always a power of two
  std::size_t first_ = 0;                      ///< this and end_ only grow
  std::size_t end_ = 0;
};

}  // namespace weir
