#pragma once

// What the suites of the kernels run on. Each suite is written once and compiled for three
// programs: on the CPU, and, with WEIR_KERNELS_ON_CUDA, on a GPU and on the stand-in of one with
// emulated kernels. A test calls a kernel as `add(x.view(), total.span())`; the fixture adds the
// stream, the BLAS and the workspace where there is a device. Nothing is skipped: without a device
// the tests fail.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/error.hpp"
#include "kernels/blas/blas.hpp"
#include "kernels/dense.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/loss.hpp"
#include "kernels/optimizer/update.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "kernels/precision/precision.hpp"
#include "kernels/sparse/csr_layer.hpp"
#include "kernels/sparse/losses.hpp"
#include "kernels/sums/reduce.hpp"
#include "support/random_seed.hpp"
#include "tests/kernels/reference.hpp"

#if defined(WEIR_KERNELS_ON_CUDA)
#include <cuda_runtime_api.h>

#include "allocator/base/error_cuda.hpp"
#endif

namespace weir::testing {

#if defined(WEIR_KERNELS_ON_CUDA)

inline constexpr bool kOnCuda = true;
inline void* take_memory(std::size_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}
inline void give_memory_back(void* memory) {
  (void)take_cuda_error(cudaDeviceSynchronize());  // a kernel may still use it
  (void)take_cuda_error(cudaFree(memory));
}
/// Waits for the whole device.
inline void copy_memory(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  // The copy from pageable memory may not have ended when it returns, and a stream that does not
  // wait for the default one would overtake it.
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

#else

inline constexpr bool kOnCuda = false;
inline void* take_memory(std::size_t bytes) {
  return std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}
inline void give_memory_back(void* memory) { std::free(memory); }
inline void copy_memory(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#endif

/// `size` elements that start `offset` elements behind a boundary of 256 bytes, with guards before
/// that boundary and behind the last element, which the destructor checks. Unwritten elements are
/// NaNs as floats.
template <typename T>
class Array {
 public:
  explicit Array(std::size_t size, std::size_t offset = 0)
      : size_(size), offset_(offset), memory_(static_cast<T*>(take_memory(total() * sizeof(T)))) {
    copy_memory(memory_, pattern().data(), total() * sizeof(T));
  }
  explicit Array(const std::vector<T>& values, std::size_t offset = 0)
      : Array(values.size(), offset) {
    assign(values);
  }
  ~Array() {
    EXPECT_TRUE(guards_hold()) << "something was written around an array of " << size_;
    give_memory_back(memory_);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] std::span<T> span() { return {memory_ + kGuard + offset_, size_}; }
  [[nodiscard]] std::span<const T> view() const { return {memory_ + kGuard + offset_, size_}; }

  /// Overwrites all elements; `values` has as many.
  void assign(const std::vector<T>& values) {
    copy_memory(span().data(), values.data(), size_ * sizeof(T));
  }
  /// What is there now.
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> found(size_);
    copy_memory(found.data(), view().data(), size_ * sizeof(T));
    return found;
  }
  [[nodiscard]] T front() const { return values().front(); }
  /// Whether no element was written.
  [[nodiscard]] bool is_unwritten() const {
    const std::vector<T> found = values();
    return std::memcmp(found.data(), pattern().data(), size_ * sizeof(T)) == 0;
  }

 private:
  /// A NaN that no operation returns: their results are quiet.
  static constexpr std::uint32_t kPattern = 0x7FBADBADU;
  static constexpr std::size_t kGuard = 256 / sizeof(T);

  [[nodiscard]] std::vector<std::uint32_t> pattern() const {
    return std::vector<std::uint32_t>(total() * sizeof(T) / sizeof kPattern + 1, kPattern);
  }
  [[nodiscard]] std::size_t total() const { return size_ + offset_ + 2 * kGuard; }
  [[nodiscard]] bool guards_hold() const {
    std::vector<T> all(total());
    copy_memory(all.data(), memory_, total() * sizeof(T));
    const std::vector<std::uint32_t> expected = pattern();
    const auto kept = [&](std::size_t begin, std::size_t end) {
      return std::memcmp(all.data() + begin, reinterpret_cast<const T*>(expected.data()) + begin,
                         (end - begin) * sizeof(T)) == 0;
    };
    return kept(0, kGuard + offset_) && kept(kGuard + offset_ + size_, total());
  }

  std::size_t size_;
  std::size_t offset_;
  T* memory_;
};

/// A size of an input and where it starts, in elements behind a boundary.
struct Extent {
  std::size_t size = 0;
  std::size_t offset = 0;
};

/// Sizes around those of a thread, a warp and a tile, at every offset from 16 bytes; a large one;
/// and one that takes three passes of a sum.
[[nodiscard]] inline std::vector<Extent> extents() {
  std::vector<Extent> all;
  for (const std::size_t size : {0U, 1U, 3U, 4U, 5U, 31U, 1023U, 1024U, 1025U}) {
    for (std::size_t offset = 0; offset < 4; ++offset) all.push_back({size, offset});
  }
  all.push_back({100003, 0});
  all.push_back({100003, 3});
  all.push_back({(1U << 20U) + 1029, 0});
  return all;
}

/// Numbers for a trace: "3 x 5 x 7".
[[nodiscard]] inline std::string sizes(std::initializer_list<std::size_t> numbers) {
  std::string text;
  for (const std::size_t number : numbers) {
    text += (text.empty() ? "" : " x ") + std::to_string(number);
  }
  return text;
}

/// Calls `test(extent)` for each, with a trace.
template <typename Test>
void for_each_extent(const Test& test) {
  for (const Extent extent : extents()) {
    SCOPED_TRACE(std::to_string(extent.size) + " elements at offset " +
                 std::to_string(extent.offset));
    test(extent);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// A new seed in each run, unless WEIR_TEST_SEED replays one.
[[nodiscard]] inline std::uint64_t fresh_seed() {
  static const std::uint64_t kSeed = [] {
    const char* const text = std::getenv("WEIR_TEST_SEED");
    const bool told = text != nullptr && *text != '\0';
    const std::uint64_t seed = told ? random_seed() : std::random_device{}();
    std::cout << "inputs: " << seed_message(seed) << '\n';
    return seed;
  }();
  return kSeed;
}

/// Equal in every bit, except that any NaN equals any other.
inline void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << found[i] << " instead of " << expected[i] << " at " << i << " of " << found.size();
  }
}

/// Whether found[i] is as near to a value in double as its bound requires. `bounded(i)` gives both.
template <typename BoundedOf>
void expect_within(const std::vector<float>& found, const BoundedOf& bounded) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const reference::Bounded expected = bounded(i);
    ASSERT_NEAR(found[i], expected.value, expected.error) << i;
  }
}

/// Inputs that no two tests share; on a device also a stream, a BLAS and a workspace full of NaNs.
class KernelTest : public ::testing::Test {
 protected:
#if defined(WEIR_KERNELS_ON_CUDA)
  void SetUp() override {
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess) << "no CUDA device";
    ASSERT_GT(devices, 0) << "no CUDA device";
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    workspace_ = std::make_unique<Array<float>>(cuda::kWorkspaceElements);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    workspace_.reset();
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] std::span<float> workspace() { return workspace_->span(); }
  [[nodiscard]] cuda::CublasHandle& blas() {
    if (!blas_) blas_ = std::make_unique<cuda::CublasHandle>();
    return *blas_;
  }

// What a kernel's arguments are preceded and followed by on a device.
#define WEIR_KERNEL(name, call)      \
  template <typename... A>           \
  void name(A&&... a) { /* NOLINT */ \
    cuda::name call;                 \
  }
#define WEIR_PLAIN(name) WEIR_KERNEL(name, (stream(), std::forward<A>(a)...))
#define WEIR_SCRATCH(name) WEIR_KERNEL(name, (stream(), std::forward<A>(a)..., workspace()))
#define WEIR_BLAS(name) WEIR_KERNEL(name, (blas(), stream(), std::forward<A>(a)..., workspace()))
  WEIR_SCRATCH(sum)
  WEIR_SCRATCH(squared_distance)
#else
#define WEIR_PLAIN(name)               \
  template <typename... A>             \
  void name(A&&... a) { /* NOLINT */   \
    weir::name(std::forward<A>(a)...); \
  }
#define WEIR_SCRATCH(name) WEIR_PLAIN(name)
#define WEIR_BLAS(name) WEIR_PLAIN(name)
  void sum(std::span<const float> x, std::span<float> total) { total[0] = weir::sum(x); }
  void squared_distance(std::span<const float> x, std::span<const float> y,
                        std::span<float> total) {
    total[0] = weir::squared_distance(x, y);
  }
#endif
  WEIR_PLAIN(fill)
  WEIR_PLAIN(add)
  WEIR_PLAIN(scale)
  WEIR_PLAIN(fill_normal)
  WEIR_PLAIN(to_half)
  WEIR_PLAIN(flag_not_finite)
  WEIR_PLAIN(scale_to_half)
  WEIR_SCRATCH(l2_loss)
  WEIR_PLAIN(l2_loss_gradient)
  WEIR_SCRATCH(softmax_cross_entropy)
  WEIR_PLAIN(softmax_cross_entropy_gradient)
  WEIR_SCRATCH(count_correct)
  WEIR_BLAS(gemm)
  WEIR_BLAS(dense_forward)
  WEIR_BLAS(dense_weight_gradient)
  WEIR_BLAS(dense_input_gradient)
  WEIR_PLAIN(bias_activation)
  WEIR_PLAIN(relu_backward)
  WEIR_SCRATCH(dense_bias_gradient)
  WEIR_SCRATCH(relu_and_bias_gradient)
  WEIR_PLAIN(sgd)
  WEIR_PLAIN(sgd_momentum)
  WEIR_PLAIN(begin_step)
  WEIR_PLAIN(end_step)
  WEIR_PLAIN(update)
  WEIR_PLAIN(update_rows)
  WEIR_PLAIN(csr_forward)
  WEIR_SCRATCH(softmax_statistics)
  WEIR_SCRATCH(softmax_loss)
  WEIR_PLAIN(softmax_gradient)
  WEIR_SCRATCH(logistic_loss)
  WEIR_SCRATCH(logistic_loss_and_gradient)
  WEIR_SCRATCH(count_hits)
  WEIR_SCRATCH(top_logits)
  WEIR_PLAIN(merge_softmax_statistics)
  WEIR_SCRATCH(merge_hits)
#undef WEIR_PLAIN
#undef WEIR_SCRATCH
#undef WEIR_BLAS
#undef WEIR_KERNEL

  /// N(0, 1) numbers, others at each call.
  [[nodiscard]] std::vector<float> random(std::size_t count) {
    std::vector<float> numbers(count);
    weir::fill_normal(fresh_seed(), ++drawn_, numbers);
    return numbers;
  }

 private:
#if defined(WEIR_KERNELS_ON_CUDA)
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<Array<float>> workspace_;
  std::unique_ptr<cuda::CublasHandle> blas_;
#endif
  std::uint64_t drawn_ = 0;
};

}  // namespace weir::testing
