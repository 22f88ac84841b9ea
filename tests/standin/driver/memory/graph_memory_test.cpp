// Memory that a graph allocates: from the capture until nothing of the graph exists.

#include "tests/standin/fixture.hpp"

namespace weir::standin::testing {
namespace {

class StandInGraphMemory : public StandIn {
 protected:
  static std::uint64_t ask(cudaGraphMemAttributeType attribute) {
    std::uint64_t bytes = 0;
    EXPECT_EQ(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes), cudaSuccess);
    return bytes;
  }
  static std::uint64_t used() { return ask(cudaGraphMemAttrUsedMemCurrent); }
  static std::uint64_t reserved() { return ask(cudaGraphMemAttrReservedMemCurrent); }

  void begin() {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaSuccess);
  }
  unsigned char* take(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocAsync(&memory, bytes, stream_), cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  cudaGraph_t end() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    return graph;
  }
  static cudaGraphExec_t instantiate(cudaGraph_t graph, unsigned long long flags = 0) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&exec, graph, flags), cudaSuccess);
    return exec;
  }
  /// An instance of a graph of one allocation and a set, with the graph destroyed.
  cudaGraphExec_t make_exec(unsigned char** memory, unsigned long long flags = 0) {
    begin();
    *memory = take(kMiB);
    EXPECT_EQ(cudaMemsetAsync(*memory, 3, kMiB, stream_), cudaSuccess);
    cudaGraph_t graph = end();
    cudaGraphExec_t exec = instantiate(graph, flags);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return exec;
  }

  cudaStream_t stream_ = make_stream();
};

TEST_F(StandInGraphMemory, IsTheGraphsWhenTakenAndGivenInIt) {
  unsigned char* result = make_memory();
  begin();
  unsigned char* memory = take(kMiB);
  ASSERT_EQ(cudaMemsetAsync(memory, 8, kMiB, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(result, memory, 512, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  cudaGraph_t graph = end();
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4U);
  EXPECT_EQ(reserved(), 2 * kMiB);
  EXPECT_EQ(weir_standin_used(0), 2 * kMiB + 512);
  cudaGraphExec_t exec = instantiate(graph);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  EXPECT_TRUE(all_bytes(result, 8));
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(ask(cudaGraphMemAttrUsedMemHigh), 2 * kMiB);
  // Nobody else may free what the graph frees itself.
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(reserved(), 2 * kMiB);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_used(0), 512U);
  EXPECT_EQ(ask(cudaGraphMemAttrReservedMemHigh), 2 * kMiB);
}

TEST_F(StandInGraphMemory, IsTheProgramsFromALaunchToItsFree) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(used(), 2 * kMiB);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaErrorInvalidValue);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(reserved(), 2 * kMiB);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 3, kMiB));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
}

TEST_F(StandInGraphMemory, OutlivesItsGraphUntilItIsFreed) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 3, kMiB));
  EXPECT_EQ(reserved(), 2 * kMiB);
  weir_standin_hold(stream_);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(reserved(), 2 * kMiB);
  weir_standin_release(stream_);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInGraphMemory, StaysUntilALaunchIsOver) {
  begin();
  unsigned char* memory = take(kMiB);
  ASSERT_EQ(cudaMemsetAsync(memory, 1, kMiB, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  cudaGraph_t graph = end();
  cudaGraphExec_t exec = instantiate(graph);
  weir_standin_hold(stream_);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(reserved(), 2 * kMiB);
  weir_standin_release(stream_);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(weir_standin_late_uses(), 0U);
}

TEST_F(StandInGraphMemory, IsGivenBackByTheNextLaunchIfThatWasSaid) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(used(), 2 * kMiB);
}

TEST_F(StandInGraphMemory, MayBeGivenByAnotherGraph) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t taking = make_exec(&memory);
  begin();
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  cudaGraphExec_t giving = instantiate(end());
  EXPECT_EQ(cudaGraphLaunch(giving, stream_), cudaErrorInvalidValue);
  ASSERT_EQ(cudaGraphLaunch(taking, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(giving, stream_), cudaSuccess);
  EXPECT_EQ(used(), 0U);
  ASSERT_EQ(cudaGraphLaunch(taking, stream_), cudaSuccess);
}

TEST_F(StandInGraphMemory, IsTheOnlyKindThatACaptureFrees) {
  void* pooled = nullptr;
  ASSERT_EQ(cudaMallocAsync(&pooled, 512, stream_), cudaSuccess);
  begin();
  EXPECT_EQ(cudaFreeAsync(pooled, stream_), cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  begin();
  unsigned char* memory = take(512);
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, stream_), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(StandInGraphMemory, CountsAgainstTheDevice) {
  weir_standin_set_memory(4 * kMiB);
  begin();
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocAsync(&memory, 5 * kMiB, stream_), cudaErrorMemoryAllocation);
  EXPECT_NE(take(4 * kMiB), nullptr);
  EXPECT_EQ(cudaMallocAsync(&memory, 1, stream_), cudaErrorMemoryAllocation);
  ASSERT_EQ(cudaGraphDestroy(end()), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
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
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
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
  ASSERT_EQ(cudaGraphDestroy(end()), cudaSuccess);
  ASSERT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphInstantiate(&second, graph, 0), cudaSuccess);
}

TEST_F(StandInGraphMemory, GoesWithItsContext) {
  unsigned char* memory = nullptr;
  cudaGraphExec_t exec = make_exec(&memory);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
  EXPECT_EQ(reserved(), 0U);
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(weir_standin_used(0), 0U);
}

TEST_F(StandInGraphMemory, HasPeaksThatCanBeTakenBack) {
  unsigned char* memory = nullptr;
  (void)make_exec(&memory);
  cudaGraphExec_t other = make_exec(&memory);
  ASSERT_EQ(cudaGraphExecDestroy(other), cudaSuccess);
  EXPECT_EQ(ask(cudaGraphMemAttrReservedMemHigh), 4 * kMiB);
  cuuint64_t value = 1;
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value),
            CUDA_ERROR_INVALID_VALUE);
  value = 0;
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value),
            CUDA_SUCCESS);
  EXPECT_EQ(ask(cudaGraphMemAttrReservedMemHigh), 2 * kMiB);
  EXPECT_EQ(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cudaDeviceGraphMemTrim(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceGraphMemTrim(1), cudaErrorInvalidDevice);
}

TEST_F(StandInGraphMemory, IsTakenByNodesToo) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.bytesize = kMiB;
  EXPECT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted), CUDA_ERROR_NOT_SUPPORTED);
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ASSERT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &wanted), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 2 * kMiB);
  ASSERT_EQ(cuGraphAddMemFreeNode(&node, graph, &node, 1, wanted.dptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphAddMemFreeNode(&node, graph, nullptr, 0, wanted.dptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphAddMemFreeNode(&node, graph, nullptr, 0, 1), CUDA_ERROR_INVALID_VALUE);
  cudaGraphExec_t exec = instantiate(graph);
  EXPECT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  EXPECT_EQ(used(), 0U);
}

#if CUDA_VERSION >= 12030
TEST_F(StandInGraphMemory, IsTakenByNodesOfAnyType) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  CUgraphNodeParams wanted{};
  wanted.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  wanted.alloc.bytesize = kMiB;
  wanted.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ASSERT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &wanted), CUDA_SUCCESS);
  EXPECT_EQ(reserved(), 2 * kMiB);
  CUgraphNodeParams freed{};
  freed.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  freed.free.dptr = wanted.alloc.dptr;
  ASSERT_EQ(cuGraphAddNode_v2(&node, graph, &node, nullptr, 1, &freed), CUDA_SUCCESS);
  CUgraphNodeParams other{};
  other.type = CU_GRAPH_NODE_TYPE_EMPTY;
  EXPECT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &other), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, nullptr),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StandInGraphMemory, IsAddedToAGraphThatIsThere) {
  begin();
  unsigned char* memory = take(kMiB);
  cudaGraph_t graph = end();
  cudaGraphExec_t before = instantiate(graph);
  ASSERT_EQ(cudaGraphExecDestroy(before), cudaSuccess);
  ASSERT_EQ(cuStreamBeginCaptureToGraph(stream_, graph, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
  ASSERT_EQ(cudaMemsetAsync(memory, 6, kMiB, stream_), cudaSuccess);
  ASSERT_EQ(cudaFreeAsync(memory, stream_), cudaSuccess);
  EXPECT_EQ(end(), graph);
  std::size_t nodes = 0;
  ASSERT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 3U);
  cudaGraphExec_t exec = instantiate(graph);
  ASSERT_EQ(cudaGraphLaunch(exec, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_TRUE(all_bytes(memory, 6, kMiB));
  EXPECT_EQ(used(), 0U);
  EXPECT_EQ(cuStreamBeginCaptureToGraph(stream_, nullptr, nullptr, nullptr, 0,
                                        CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_INVALID_VALUE);
}
#endif

}  // namespace
}  // namespace weir::standin::testing
