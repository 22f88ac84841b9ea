#pragma once

// Common parts of the tests of device kernels. They run on a GPU and, in another program, on an
// emulation of one. They skip nothing: without a device they fail.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "kernels/parts/workspace_cuda.hpp"
#include "support/random_seed.hpp"
#include "tests/kernels/cuda/device_array_cuda.hpp"
#include "tests/kernels/reference.hpp"

namespace weir::testing {

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

[[nodiscard]] inline std::string describe(Extent extent) {
  return std::to_string(extent.size) + " elements at offset " + std::to_string(extent.offset);
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

/// A stream, a workspace full of NaNs, and inputs that no two tests share.
class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess) << "no CUDA device";
    ASSERT_GT(devices, 0) << "no CUDA device";
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    workspace_ = std::make_unique<DeviceArray<float>>(cuda::kWorkspaceElements);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_TRUE(workspace_->guards_hold()) << "something was written around the workspace";
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] std::span<float> workspace() { return workspace_->span(); }
  /// N(0, 1) numbers, others at each call.
  [[nodiscard]] std::vector<float> random(std::size_t count) {
    std::vector<float> numbers(count);
    fill_normal(fresh_seed(), ++drawn_, numbers);
    return numbers;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<DeviceArray<float>> workspace_;
  std::uint64_t drawn_ = 0;
};

}  // namespace weir::testing
