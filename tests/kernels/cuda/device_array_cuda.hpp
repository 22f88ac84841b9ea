#pragma once

// Device memory for a test: filled with a pattern, and checked on both sides.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "allocator/base/error_cuda.hpp"

namespace weir::testing {

/// `size` elements that start `offset` elements behind a boundary of 256 bytes, with guards before
/// that boundary and behind the last element. Unwritten elements are NaNs as floats. Copies wait
/// for the whole device.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size, std::size_t offset = 0) : size_(size), offset_(offset) {
    void* memory = nullptr;
    check_cuda(cudaMalloc(&memory, total() * sizeof(T)), "cudaMalloc");
    memory_ = static_cast<T*>(memory);
    copy(memory_, pattern().data(), total() * sizeof(T));
  }
  explicit DeviceArray(const std::vector<T>& values, std::size_t offset = 0)
      : DeviceArray(values.size(), offset) {
    assign(values);
  }
  ~DeviceArray() {
    (void)take_cuda_error(cudaDeviceSynchronize());  // a kernel may still use it
    (void)take_cuda_error(cudaFree(memory_));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] std::span<T> span() { return {memory_ + kGuard + offset_, size_}; }
  [[nodiscard]] std::span<const T> view() const { return {memory_ + kGuard + offset_, size_}; }

  /// Overwrites all elements; `values` has as many.
  void assign(const std::vector<T>& values) {
    copy(span().data(), values.data(), size_ * sizeof(T));
  }

  /// What is there now.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> found(size_);
    copy(found.data(), view().data(), size_ * sizeof(T));
    return found;
  }

  /// Whether the guards are unchanged.
  [[nodiscard]] bool guards_hold() const {
    std::vector<T> all(total());
    copy(all.data(), memory_, total() * sizeof(T));
    const std::vector<std::uint32_t> expected = pattern();
    const auto kept = [&](std::size_t begin, std::size_t end) {
      return std::memcmp(all.data() + begin, reinterpret_cast<const T*>(expected.data()) + begin,
                         (end - begin) * sizeof(T)) == 0;
    };
    return kept(0, kGuard + offset_) && kept(kGuard + offset_ + size_, total());
  }

 private:
  /// A NaN that no operation returns: their results are quiet.
  static constexpr std::uint32_t kPattern = 0x7FBADBADU;
  static constexpr std::size_t kGuard = 256 / sizeof(T);

  [[nodiscard]] std::vector<std::uint32_t> pattern() const {
    return std::vector<std::uint32_t>(total() * sizeof(T) / sizeof kPattern + 1, kPattern);
  }
  [[nodiscard]] std::size_t total() const { return size_ + offset_ + 2 * kGuard; }
  static void copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
    // The copy from pageable memory may not have ended when it returns, and a stream that does not
    // wait for the default one would overtake it.
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  T* memory_ = nullptr;
  std::size_t size_;
  std::size_t offset_;
};

}  // namespace weir::testing
