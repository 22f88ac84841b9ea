// A device whose operations run on streams of the program.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "allocator/base/error.hpp"
#include "allocator/base/error_cuda.hpp"
#include "scheduler/device/standin_fixture.hpp"
#include "scheduler/device/stream_cuda.hpp"
#include "scheduler/device/user_streams_cuda.hpp"
#include "scheduler/scheduler.hpp"
#include "support/gate.hpp"
#include "support/message_of.hpp"
#include "support/options_of.hpp"
#include "support/refused.hpp"

namespace weir {
namespace {

using testing::message_of;

constexpr Bytes kUserBlock{4096};

class UserStreamsTest : public testing::StandinTest {
 protected:
  void open(const CudaUserStreams& streams) {
    device.emplace(open_cuda_device(0, streams, {.memory = mib(8)}));
    pool.emplace(device->memory(), testing::options_of(mib(4)));
    scheduler.emplace(*device, *pool);
  }
  void close() {
    weir_standin_release(weir_standin_all_streams());
    scheduler.reset();
    pool.reset();
    device.reset();
  }
  void TearDown() override { close(); }

  /// Work that the program enqueues itself.
  static void set(cudaStream_t stream, void* to, int value) {
    EXPECT_EQ(cudaMemsetAsync(to, value, kUserBlock.count, stream), cudaSuccess);
  }
  /// A tensor with what `from` holds when its operation runs.
  [[nodiscard]] Tensor copy_of(const void* from) {
    Tensor tensor = scheduler->empty({kUserBlock.count}, DType::kUInt8, "copy");
    scheduler->submit("copy", {.writes = {tensor}}, [from](Stream& stream, Inputs, Outputs out) {
      stream.copy(out.bytes(0).data(), from, kUserBlock);
    });
    return tensor;
  }
  [[nodiscard]] StreamId id(StreamRole role) { return device->backend().stream(role); }

  std::optional<testing::UserStream> first{std::in_place};
  std::optional<testing::UserStream> second{std::in_place};
  std::optional<Device> device;
  std::optional<Pool> pool;
  std::optional<Scheduler> scheduler;
};

TEST_F(UserStreamsTest, RunOperationsInOrderWithWhatTheProgramEnqueues) {
  open({.compute = first->get()});
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, kUserBlock.count), cudaSuccess);
  cudaStream_t ran_on = nullptr;
  weir_standin_hold(first->get());
  set(first->get(), block, 1);
  const Tensor one = copy_of(block);
  set(first->get(), block, 2);
  const Tensor two = copy_of(block);
  scheduler->submit("look", {},
                    [&](Stream& stream, Inputs, Outputs) { ran_on = cuda_stream(stream); });
  weir_standin_release(first->get());
  EXPECT_EQ(scheduler->read<std::uint8_t>(one), std::vector<std::uint8_t>(kUserBlock.count, 1));
  EXPECT_EQ(scheduler->read<std::uint8_t>(two), std::vector<std::uint8_t>(kUserBlock.count, 2));
  EXPECT_EQ(ran_on, first->get());
  EXPECT_GT(device->backend().busy(StreamRole::kCompute).count(), 0);
  close();
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(UserStreamsTest, MayBeTheLegacyDefaultStream) {
  open({.compute = cudaStreamLegacy});
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, kUserBlock.count), cudaSuccess);
  weir_standin_delay(weir_standin_all_streams(), 1'000'000);
  set(cudaStreamLegacy, block, 1);
  const Tensor one = copy_of(block);
  set(cudaStreamLegacy, block, 2);
  EXPECT_EQ(scheduler->read<std::uint8_t>(one), std::vector<std::uint8_t>(kUserBlock.count, 1));
  close();
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

TEST_F(UserStreamsTest, AreAwaitedWithTheProgramsWorkByFreesAndByBatches) {
  open({.compute = first->get(), .copy_in = second->get()});
  const StreamId home = id(StreamRole::kCopyIn);
  void* const x = pool->allocate(kUserBlock, home);
  std::optional<Batch> batch = scheduler->begin_batch("train");
  scheduler->submit("nothing", {}, [](Stream&, Inputs, Outputs) {});
  weir_standin_hold(first->get());
  set(first->get(), x, 1);  // behind all that was submitted
  pool->record_use(x, id(StreamRole::kCompute));
  EXPECT_EQ(pool->deallocate(x, home), Freed::kAwaiting);
  batch.reset();
  testing::give_others_a_chance();
  EXPECT_EQ(scheduler->memory_info().awaiting, kUserBlock);
  EXPECT_EQ(scheduler->admission().submitted, 1U);
  weir_standin_release(first->get());
  scheduler->wait_all();
  EXPECT_EQ(scheduler->memory_info().awaiting, Bytes{});
  EXPECT_EQ(scheduler->admission().submitted, 0U);
}

TEST_F(UserStreamsTest, AreTheProgramsOwnAgainOnceTheDeviceIsClosed) {
  open({.compute = first->get(), .compute2 = second->get()});
  EXPECT_EQ(weir_standin_live().streams, 4U) << "two of the program's, two of the device's own";
  scheduler->submit("nothing", {}, [](Stream&, Inputs, Outputs) {});
  close();
  EXPECT_EQ(weir_standin_live().streams, 2U);
  EXPECT_EQ(weir_standin_live().events, 0U);
  open({.compute = second->get(), .copy_out = first->get()});
  const Tensor x = scheduler->empty({4});
  scheduler->write(x, 0, std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(scheduler->read(x), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(UserStreamsTest, ThatAreNotAllowedAreRefused) {
  const auto refusal = [](const CudaUserStreams& streams) {
    return message_of<UsageError>([&] { (void)open_cuda_device(0, streams); });
  };
  EXPECT_EQ(refusal({.compute = first->get(), .copy_out = first->get()}),
            "cuda:0: the stream for copy-out is that for compute, too: give one");
  const std::string several =
      "cuda:0: the stream for copy-in is a default stream by a name that means another one on each "
      "thread or in each source file: give a stream of your own, or cudaStreamLegacy";
  EXPECT_EQ(refusal({.copy_in = nullptr}), several);
  EXPECT_EQ(refusal({.copy_in = cudaStreamPerThread}), several);
  EXPECT_EQ(message_of<UsageError>([&] {
              (void)open_cuda_device(0, {.compute = first->get()}, {.memory = gib(100)});
            }).substr(0, 31),
            "device memory 100 GiB is not al");
  const testing::Capture capture(first->get(), cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(refusal({.compute = first->get()}), "cuda:0: the stream for compute is being captured");
}

TEST_F(UserStreamsTest, OfAnotherGpuAreRefused) {
  weir_standin_set_devices(2);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  {
    const testing::UserStream other;
    testing::expect_refused("cuEventRecord", CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(message_of<UsageError>([&] { (void)open_cuda_device(0, {.compute2 = other.get()}); }),
              "cuda:0: the stream for compute-2 is not a stream of this GPU");
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST_F(UserStreamsTest, WhileCapturedTakeNoOperationAndNothingChanges) {
  open({.compute = first->get()});
  constexpr std::size_t kMany = 4096;  // more than a slab's slot
  const Tensor x = scheduler->empty({kMany});
  testing::Capture capture(first->get(), cudaStreamCaptureModeRelaxed);
  const std::string why = message_of<CudaError>([&] {
    scheduler->submit("set", {.writes = {x}}, [](Stream&, Inputs, Outputs) {
      ADD_FAILURE() << "enqueued into the program's graph";
    });
  });
  EXPECT_NE(why.find("the stream is being captured"), std::string::npos) << why;
  EXPECT_EQ(capture.end(), 0U);
  EXPECT_EQ(scheduler->memory_info().allocated, Bytes{});
  scheduler->submit("set", {.writes = {x}}, [](Stream& stream, Inputs, Outputs out) {
    EXPECT_EQ(cudaMemsetAsync(out[0].data(), 0, out[0].size_bytes(), cuda_stream(stream)),
              cudaSuccess);
  });
  EXPECT_EQ(scheduler->read(x), std::vector<float>(kMany, 0.0F));
}

// The program breaks the rule: later submissions fail, and nothing hangs.
TEST_F(UserStreamsTest, DestroyedWhileInUseTakeNoMoreOperationsAndEverythingEnds) {
  testing::expect_refused("cuStreamSynchronize", CUDA_ERROR_INVALID_HANDLE);
  testing::expect_refused("cuStreamIsCapturing", CUDA_ERROR_INVALID_HANDLE);
  cudaStream_t gone = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&gone, cudaStreamNonBlocking), cudaSuccess);
  open({.compute = gone});
  Tensor x = scheduler->empty({4});
  const auto zero = [](Stream& stream, Inputs, Outputs out) {
    check_cuda(cudaMemsetAsync(out[0].data(), 0, out[0].size_bytes(), cuda_stream(stream)),
               "cudaMemsetAsync");
  };
  scheduler->submit("set", {.writes = {x}}, zero);
  ASSERT_EQ(cudaStreamDestroy(gone), cudaSuccess);
  scheduler->wait(x);  // the driver ends what was enqueued
  EXPECT_THROW(scheduler->submit("set", {.writes = {x}}, zero), CudaError);
  Tensor y = scheduler->empty({4}, "on another stream");
  scheduler->write(y, 0, std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(scheduler->read(y), (std::vector<float>{1, 2, 3, 4}));
  x = {};
  y = {};
  close();
  EXPECT_GT(weir_standin_live().device_blocks, 0U) << "nobody knows whether it is still used";
  first.reset();
  second.reset();
  weir_standin_reset();
}

}  // namespace
}  // namespace weir
