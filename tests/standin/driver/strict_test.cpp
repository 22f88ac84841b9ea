// A stricter driver: launches that block, host functions one after the other, and reserved
// addresses that look like memory.

#include <cuda.h>
#include <gtest/gtest-spi.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/standin/fixture.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held.hpp"

namespace {

using weir::standin::testing::ok;

using weir::standin::testing::kMiB;
using weir::standin::testing::StandIn;
using weir::testing::Gate;

class StandInStrict : public StandIn {
 protected:
  /// Whether `launch` on a held `stream` returns.
  template <typename Launch>
  static bool returns_while_held(cudaStream_t stream, const Launch& launch) {
    weir_standin_hold(stream);
    std::atomic<bool> returned = false;
    std::thread launcher([&] {
      ok(launch(stream));
      returned = true;
    });
    while (weir_standin_pending(stream) == 0) std::this_thread::yield();
    weir::testing::give_others_a_chance();
    const bool early = returned;
    weir_standin_release(stream);
    launcher.join();
    EXPECT_TRUE(early || weir_standin_pending(stream) == 0) << "it returned before it had run";
    return early;
  }
};

TEST_F(StandInStrict, LaunchesWaitForTheirStreamWhereTheyBlock) {
  unsigned char* const to = make_memory();
  unsigned char* const from = make_memory();
  cudaStream_t stream = make_stream();
  const auto set = [=](cudaStream_t on) { return cudaMemsetAsync(to, 1, 512, on); };
  const auto copy = [=](cudaStream_t on) {
    return cudaMemcpyAsync(to, from, 512, cudaMemcpyDeviceToDevice, on);
  };
  const auto event = make_event();
  const auto record = [=](cudaStream_t on) { return cudaEventRecord(event, on); };
  ok(set(stream));
  ok(cudaStreamSynchronize(stream));
  weir_standin_set_launches_block(1);
  EXPECT_FALSE(returns_while_held(stream, set));
  EXPECT_FALSE(returns_while_held(stream, copy));
  EXPECT_TRUE(returns_while_held(stream, record)) << "which is no launch";
}

TEST_F(StandInStrict, LaunchesInACaptureDoNotBlock) {
  unsigned char* const memory = make_memory();
  cudaStream_t stream = make_stream();
  weir_standin_set_launches_block(1);
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  weir_standin_hold(stream);
  ok(cudaMemsetAsync(memory, 1, 512, stream));
  weir_standin_release(stream);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_FALSE(
      returns_while_held(stream, [=](cudaStream_t on) { return cudaGraphLaunch(exec, on); }));
  EXPECT_TRUE(all_bytes(memory, 1));
}

/// Two streams, each with a gate in a host function.
class TwoGates {
 public:
  TwoGates(cudaStream_t first, cudaStream_t second) {
    enqueue(first, first_);
    first_.gate.await_arrival();
    enqueue(second, second_);
  }
  Gate& first() { return first_.gate; }
  Gate& second() { return second_.gate; }
  [[nodiscard]] int arrived() const { return arrived_; }

 private:
  struct Step {
    std::atomic<int>& arrived;
    Gate gate = {};
  };
  static void enqueue(cudaStream_t stream, Step& step) {
    const auto run = [](void* data) {
      auto& now = *static_cast<Step*>(data);
      ++now.arrived;
      now.gate.pass();
    };
    ok(cudaLaunchHostFunc(stream, run, &step));
  }

  std::atomic<int> arrived_ = 0;
  Step first_{arrived_};
  Step second_{arrived_};
};

TEST_F(StandInStrict, HostFunctionsOfTwoStreamsRunSideBySide) {
  TwoGates gates(make_stream(), make_stream());
  gates.second().await_arrival();
  gates.first().open();
  gates.second().open();
  ok(cudaDeviceSynchronize());
}

TEST_F(StandInStrict, HostFunctionsRunOneAfterTheOtherWhereTheyAreSerial) {
  weir_standin_set_host_functions_serial(1);
  TwoGates gates(make_stream(), make_stream());
  weir::testing::give_others_a_chance();
  EXPECT_EQ(gates.arrived(), 1);
  gates.first().open();
  gates.second().await_arrival();
  EXPECT_EQ(gates.arrived(), 2);
  gates.second().open();
  ok(cudaDeviceSynchronize());
}

TEST_F(StandInStrict, AStreamIsHeldOnlyInSuitesThatAreLeftOutByName) {
  EXPECT_NONFATAL_FAILURE(weir::testing::expect_named_while_held(), "StandInStrict holds a stream");
}

/// Reserved addresses, one page of them mapped.
class StandInReserved : public StandInStrict {
 protected:
  StandInReserved() {
    ok(cuMemAddressReserve(&range, 4 * kMiB, 0, 0, 0));
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ok(cuMemCreate(&page, 2 * kMiB, &properties, 0));
    ok(cuMemMap(range, 2 * kMiB, 0, page, 0));
  }
  struct Answer {
    unsigned int type = 77;
    int mapped = 77;
  };
  static Answer ask(CUdeviceptr pointer) {
    Answer answer;
    std::array wanted{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MAPPED};
    std::array<void*, 2> data{&answer.type, &answer.mapped};
    ok(cuPointerGetAttributes(2, wanted.data(), data.data(), pointer));
    return answer;
  }
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle page = 0;
};

TEST_F(StandInReserved, AddressesWithoutAPageAreUnknownUnlessTheyAreToPassForMemory) {
  for (const bool pass : {false, true}) {
    weir_standin_set_reserved_is_device(pass ? 1 : 0);
    EXPECT_EQ(ask(range).type, CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(ask(range).mapped, 1);
    EXPECT_EQ(ask(range + 2 * kMiB).type, pass ? unsigned{CU_MEMORYTYPE_DEVICE} : 0U);
    EXPECT_EQ(ask(range + 2 * kMiB).mapped, 0);
    EXPECT_EQ(ask(range + 4 * kMiB).type, 0U) << "beyond what is reserved";
    EXPECT_EQ(ask(range - 1).type, 0U);
  }
}

}  // namespace
