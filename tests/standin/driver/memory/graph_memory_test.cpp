// Memory that a graph allocates: from the capture until nothing of the graph exists.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInGraphMemory : public StandIn {
 protected:
  static std::uint64_t ask(cudaGraphMemAttributeType attribute) {
    std::uint64_t bytes = 0;
    ok(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
  }
  static std::uint64_t used() { return ask(cudaGraphMemAttrUsedMemCurrent); }
  static std::uint64_t reserved() { return ask(cudaGraphMemAttrReservedMemCurrent); }

  void begin() { ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal)); }
  unsigned char* take(std::size_t bytes) {
    void* memory = nullptr;
    ok(cudaMallocAsync(&memory, bytes, stream_));
    return static_cast<unsigned char*>(memory);
  }
  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    ok(cudaStreamEndCapture(stream_, &graph));
    return graph;
  }
  static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned long long flags = 0) {
    cudaGraphExec_t exec = nullptr;
    ok(cudaGraphInstantiate(&exec, graph, flags));
    return exec;
  }
  /// An instance of a graph of one allocation and a set, with the graph destroyed.
  cudaGraphExec_t make_exec(unsigned char** memory, unsigned long long flags = 0) {
    begin();
    *memory = take(kMiB);
    ok(cudaMemsetAsync(*memory, 3, kMiB, stream_));
    cudaGraph_t graph = end();
    cudaGraphExec_t exec = instantiate(graph, flags);
    ok(cudaGraphDestroy(graph));
    return exec;
  }
};

TEST_F(StandInGraphMemory, IsTheGraphsWhenTakenAndGivenInIt) {
  unsigned char* result = make_memory();
  begin();
  unsigned char* memory = take(kMiB);
  ok(cudaMemsetAsync(memory, 8, kMiB, stream_));
  ok(cudaMemcpyAsync(result, memory, 512, cudaMemcpyDeviceToDevice, stream_));
  ok(cudaFreeAsync(memory, stream_));
  cudaGraph_t graph = end();
  std::size_t nodes = 0;
  ok(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 4U);
  EXPECT_EQ(reserved(), 2 * kMiB);
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB + 512);
  cudaGraphExec_t exec = instantiate(graph);
  for (int i = 0; i < 2; ++i) {
    ok(cudaGraphLaunch(exec, stream_));
    sync();
  }
  EXPECT_TRUE(all_bytes(result, 8));
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(ask(cudaGraphMemAttrUsedMemHigh), 2 * kMiB);
  // Nobody else may free what the graph frees itself.
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ok(cudaGraphDestroy(graph));
  EXPECT_EQ(reserved(), 2 * kMiB);
  ok(cudaGraphExecDestroy(exec));
  sync();
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_used(0), 512U);
  EXPECT_EQ(ask(cudaGraphMemAttrReservedMemHigh), 2 * kMiB);
}

TEST_F(StandInGraphMemory, IsTheProgramsFromALaunchToItsFree) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ok(cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(used(), 2 * kMiB);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
  ok(cudaFreeAsync(memory, stream_));
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(reserved(), 2 * kMiB);
  ok(cudaGraphLaunch(exec, stream_));
  sync();
  EXPECT_TRUE(all_bytes(memory, 3, kMiB));
  ok(cudaFree(memory));
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(StandInGraphMemory, OutlivesItsGraphUntilItIsFreed) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory);
  ok(cudaGraphLaunch(exec, stream_));
  ok(cudaGraphExecDestroy(exec));
  sync();
  EXPECT_TRUE(all_bytes(memory, 3, kMiB));
  EXPECT_EQ(reserved(), 2 * kMiB);
  while_held([&] {
    ok(cudaFreeAsync(memory, stream_));
    EXPECT_EQ(reserved(), 2 * kMiB);
  });
  sync();
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInGraphMemory, StaysUntilALaunchIsOver) {
  begin();
  unsigned char* memory = take(kMiB);
  ok(cudaMemsetAsync(memory, 1, kMiB, stream_));
  ok(cudaFreeAsync(memory, stream_));
  cudaGraph_t graph = end();
  cudaGraphExec_t exec = instantiate(graph);
  while_held([&] {
    ok(cudaGraphLaunch(exec, stream_));
    ok(cudaGraphExecDestroy(exec));
    ok(cudaGraphDestroy(graph));
    EXPECT_EQ(reserved(), 2 * kMiB);
  });
  sync();
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(StandInGraphMemory, IsGivenBackByTheNextLaunchIfThatWasSaid) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  for (int i = 0; i < 3; ++i) ok(cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(used(), 2 * kMiB);
}

TEST_F(StandInGraphMemory, IsTheOnlyKindThatACaptureFrees) {
  void* pooled = nullptr;
  ok(cudaMallocAsync(&pooled, 512, stream_));
  begin();
  EXPECT_EQ(cudaFreeAsync(pooled, stream_), cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  begin();
  unsigned char* memory = take(512);
  ok(cudaFreeAsync(memory, stream_));
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(StandInGraphMemory, OfABrokenCaptureIsGivenBack) {
  begin();
  (void)take(kMiB);
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorStreamCaptureUnsupported);
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocAsync(&memory, 1, stream_), cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(reserved(), 0U);
  begin();
  (void)take(kMiB);
  ok(cudaEventCreate(&event));
  ok(cudaEventRecord(event, stream_));
  ok(cudaStreamDestroy(stream_));
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(StandInGraphMemory, AllowsOneInstanceAndNoChild) {
  begin();
  (void)take(kMiB);
  cudaGraph_t graph = end();
  cudaGraphExec_t exec = instantiate(graph);
  cudaGraphExec_t second = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&second, graph, 0), cudaErrorNotSupported);
  begin();
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorNotSupported);
  ok(cudaGraphDestroy(end()));
  ok(cudaGraphExecDestroy(exec));
  ok(cudaGraphInstantiate(&second, graph, 0));
}

}  // namespace
}  // namespace weir::standin::testing
