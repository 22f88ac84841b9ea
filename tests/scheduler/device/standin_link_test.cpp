// Faults of a GPU in copies between it and the cpu: every copy ends, and none passes for done.

#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/cpu_device.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "scheduler/device_link.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/message_of.hpp"

namespace weir {
namespace {

class LinkFaults : public testing::StandinTest {
 protected:
  ~LinkFaults() override { gate.open(); }

  [[nodiscard]] Tensor of_cpu(float value) {
    Tensor tensor = cpu->empty({1024}, "of the cpu");
    cpu->submit("fill", {.writes = {tensor}},
                [value](Stream&, Inputs, Outputs out) { std::ranges::fill(out[0], value); });
    return tensor;
  }
  [[nodiscard]] bool all_are(Scheduler& scheduler, const Tensor& tensor, float value) {
    return std::ranges::count(scheduler.read(tensor), value) == 1024;
  }
  /// Calls `wait_all`, and returns whether it threw what an operation did.
  [[nodiscard]] static bool has_failed(Scheduler& scheduler) {
    try {
      scheduler.wait_all();
    } catch (const OperationError&) {
      return true;
    }
    return false;
  }
  void close() {
    link.reset();
    gpu.reset();
    gpu_pool.reset();
    gpu_device.reset();
  }

  testing::LogCapture log;
  testing::Gate gate;
  Device cpu_device{std::make_unique<CpuDevice>(mib(8))};
  Pool cpu_pool{cpu_device.memory()};
  std::unique_ptr<Scheduler> cpu = std::make_unique<Scheduler>(cpu_device, cpu_pool);
  std::unique_ptr<Device> gpu_device = std::make_unique<Device>(std::make_unique<CudaDevice>(0));
  std::unique_ptr<Pool> gpu_pool = std::make_unique<Pool>(gpu_device->memory());
  std::unique_ptr<Scheduler> gpu = std::make_unique<Scheduler>(*gpu_device, *gpu_pool);
  std::unique_ptr<DeviceLink> link = std::make_unique<DeviceLink>(*cpu, *gpu);
};

TEST_F(LinkFaults, ACallThatFailsIsTheErrorOfTheCopy) {
  const Tensor x = of_cpu(1);
  const Tensor there = link->copy_to(*gpu, x);
  ASSERT_TRUE(all_are(*gpu, there, 1));
  const std::uint64_t used = weir_standin_calls("cuLaunchHostFunc");
  ASSERT_EQ(used, 2U) << "of the half on the GPU: it awaits the cpu, and says when it has copied";
  for (std::uint64_t nth = 1; nth <= used; ++nth) {
    SCOPED_TRACE(nth);
    fail("cuLaunchHostFunc", nth, CUDA_ERROR_OUT_OF_MEMORY);
    const Tensor in = link->copy_to(*gpu, x);
    EXPECT_THROW(gpu->wait(in), OperationError);
    EXPECT_TRUE(has_failed(*gpu));
    EXPECT_FALSE(has_failed(*cpu));
    fail("cuLaunchHostFunc", nth, CUDA_ERROR_OUT_OF_MEMORY);
    const Tensor out = link->copy_to(*cpu, there);
    EXPECT_THROW(cpu->wait(out), CudaError);
    EXPECT_TRUE(has_failed(*gpu));
    EXPECT_THROW(cpu->wait_all(), CudaError);
  }
  EXPECT_TRUE(all_are(*cpu, link->copy_to(*cpu, link->copy_to(*gpu, of_cpu(5))), 5));
  gpu->wait_all();  // a copy counts once both devices have told their operations
  EXPECT_EQ(link->copied_to(*gpu).copies, 2U) << "those that failed do not count";
  EXPECT_EQ(link->copied_to(*cpu).copies, 1U);
}

TEST_F(LinkFaults, AGpuThatIsLostEndsEveryCopy) {
  const Tensor x = gpu->empty({1024}, "x");
  gpu->submit("hold", {}, [this](Stream& stream, Inputs, Outputs) {
    const auto call = [](void* data) { static_cast<testing::Gate*>(data)->pass(); };
    check_cuda(cudaLaunchHostFunc(cuda_stream(stream), call, &gate), "cudaLaunchHostFunc");
  });
  gate.await_arrival();
  gpu->submit("set", {.writes = {x}}, [](Stream& stream, Inputs, Outputs out) {
    check_cuda(cudaMemsetAsync(out[0].data(), 0, out[0].size_bytes(), cuda_stream(stream)),
               "cudaMemsetAsync");
  });
  std::vector<Tensor> copies;
  for (int i = 0; i < 3; ++i) {
    copies.push_back(link->copy_to(*cpu, x));
    copies.push_back(link->copy_to(*gpu, copies.back()));
  }
  fail_from_now_on("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS);
  gate.open();
  EXPECT_THROW(gpu->wait(x), CudaError);
  EXPECT_THROW(gpu->wait(copies.back()), CudaError);
  EXPECT_THROW((void)link->copy_to(*cpu, x), CudaError);
  EXPECT_THROW((void)link->copy_to(*gpu, of_cpu(1)), CudaError);
  for (std::size_t i = 0; i < copies.size(); i += 2) {
    try {
      cpu->wait(copies[i]);  // ends: the copy came before the loss, or has its error
    } catch (const Error&) {
    }
  }
  const Tensor y = of_cpu(2);
  EXPECT_TRUE(all_are(*cpu, y, 2)) << "the cpu goes on";
  copies.clear();
  close();
  weir_standin_reset();  // memory that the lost device may still use is kept
}

TEST_F(LinkFaults, PinnedMemoryDoesNotGrowWithTheCopies) {
  const Tensor x = of_cpu(1);
  const auto there_and_back = [&] {
    cpu->wait(link->copy_to(*cpu, link->copy_to(*gpu, x)));
    gpu->wait_all();
  };
  for (int i = 0; i < 3; ++i) there_and_back();
  weir_standin_clear_counters();
  for (int i = 0; i < 100; ++i) there_and_back();
  // The thread that serves a GPU may still be about to tell the end of a copy: then its memory is
  // not idle, and one piece more is made, once.
  EXPECT_LE(weir_standin_calls("cuMemHostAlloc"), 2U);
  EXPECT_EQ(weir_standin_calls("cuMemFreeHost"), 0U);
}

}  // namespace
}  // namespace weir
