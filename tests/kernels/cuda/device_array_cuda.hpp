#pragma once

// Device memory in the hands of a test: filled with a pattern, watched on both sides.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "allocator/error_cuda.hpp"

namespace weir::testing {

/// `size` elements that start `offset` elements behind a boundary of 256 bytes, with as much in
/// front of that boundary and behind the last element that must not change. As a float, what is not
/// written yet is a NaN. Copies wait for the whole device.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size, std::size_t offset = 0) : size_(size), offset_(offset) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, total() * sizeof(T)), "cudaMalloc");
    memory_ = static_cast<T*>(memory);
    const std::vector<std::uint8_t> pattern(total() * sizeof(T), kPattern);
    copy(memory_, pattern.data(), pattern.size());
  }
  explicit DeviceArray(const std::vector<T>& values, std::size_t offset = 0)
      : DeviceArray(values.size(), offset) {
    copy(span().data(), values.data(), size_ * sizeof(T));
  }
  ~DeviceArray() {
    (void)take_cuda_error(cudaDeviceSynchronize());  // a kernel may still be at it
    (void)take_cuda_error(cudaFree(memory_));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] std::span<T> span() { return {memory_ + kGuard + offset_, size_}; }
  [[nodiscard]] std::span<const T> view() const { return {memory_ + kGuard + offset_, size_}; }

  /// What is there now.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> found(size_);
    copy(found.data(), view().data(), size_ * sizeof(T));
    return found;
  }

  /// Whether nothing was written around the elements.
  [[nodiscard]] bool guards_hold() const {
    std::vector<std::uint8_t> all(total() * sizeof(T));
    copy(all.data(), memory_, all.size());
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>((kGuard + offset_) * sizeof(T));
    const auto end = begin + static_cast<std::ptrdiff_t>(size_ * sizeof(T));
    const auto kept = [](std::uint8_t byte) { return byte == kPattern; };
    return std::all_of(all.begin(), begin, kept) && std::all_of(end, all.end(), kept);
  }

 private:
  static constexpr std::uint8_t kPattern = 0xFF;
  static constexpr std::size_t kGuard = 256 / sizeof(T);

  [[nodiscard]] std::size_t total() const { return size_ + offset_ + 2 * kGuard; }
  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
    // Pageable memory may still be on its way when the copy returns, and a stream that does not
    // wait for the default one would overtake it.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  T* memory_ = nullptr;
  std::size_t size_;
  std::size_t offset_;
};

}  // namespace weir::testing
