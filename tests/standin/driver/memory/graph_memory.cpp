// Memory that graphs allocate, by captures and by nodes.

#include <algorithm>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

#undef cuGraphAddNode

namespace weir::standin {
namespace {

Block* block_of(Driver& driver, const GraphMemory& memory) {
  const auto found = driver.blocks.find(memory.base);
  // The reset of a context removed its blocks, and the address may be another block's by now.
  return found != driver.blocks.end() && found->second.graph == &memory ? &found->second : nullptr;
}

bool takes(const Graph& graph, const GraphMemory& memory) {
  return std::any_of(graph.taken.begin(), graph.taken.end(),
                     [&](const auto& taken) { return taken.get() == &memory; });
}

void take(Block& block) {
  Device& device = *block.pool->device;
  block.taken = block.graph->shared_from_this();
  device.graph_used += block.charged;
  device.graph_used_high = std::max(device.graph_used_high, device.graph_used);
}

/// The caller keeps the memory alive, or drops it last of all.
[[nodiscard]] std::shared_ptr<GraphMemory> give(Block& block) {
  block.pool->device->graph_used -= block.charged;
  return std::move(block.taken);
}

}  // namespace

GraphMemory::~GraphMemory() {
  if (block_of(driver(), *this) != nullptr) release_block(driver(), base);
}

CUdeviceptr allocate_in_graph(Call& call, Graph& graph, const std::shared_ptr<Pool>& pool,
                              std::size_t bytes) {
  require(bytes <= SIZE_MAX / 2, CUDA_ERROR_OUT_OF_MEMORY);
  Device& device = *pool->device;
  const std::size_t charged = round_up(bytes, kPage);
  device.charge(charged);
  void* memory = take_memory(BlockKind::kGraph, bytes);
  if (memory == nullptr) device.credit(charged);
  require(memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  device.graph_reserved += charged;
  device.graph_reserved_high = std::max(device.graph_reserved_high, device.graph_reserved);
  const auto made = std::make_shared<GraphMemory>();
  made->base = reinterpret_cast<std::uintptr_t>(memory);
  graph.taken.push_back(made);
  add_block(call.driver, made->base,
            {.kind = BlockKind::kGraph,
             .bytes = bytes,
             .charged = charged,
             .context = call.context,
             .pool = pool,
             .graph = made.get()});
  return made->base;
}

void free_in_graph(Graph& graph, const Graph* before, const Block* block) {
  require(block != nullptr && block->kind == BlockKind::kGraph);
  GraphMemory& memory = *block->graph;
  const auto given = memory.shared_from_this();
  require(!memory.given_inside && std::ranges::find(graph.given, given) == graph.given.end());
  memory.given_inside = takes(graph, memory) || (before != nullptr && takes(*before, memory));
  graph.given.push_back(given);
}

void launch_memory(Driver& driver, const GraphExec& exec) {
  const Graph& graph = *exec.graph;
  for (const auto& memory : graph.taken) {
    const Block* block = block_of(driver, *memory);
    require(block != nullptr && (!block->taken || exec.frees_on_launch));
  }
  for (const auto& memory : graph.given) {
    const Block* block = block_of(driver, *memory);
    require(block != nullptr && (takes(graph, *memory) || block->taken));
  }
  for (const auto& memory : graph.taken) {
    Block& block = *block_of(driver, *memory);
    if (block.taken) (void)give(block);
    take(block);
  }
  for (const auto& memory : graph.given) (void)give(*block_of(driver, *memory));
}

void free_graph_memory(Block& block) {
  require(block.taken != nullptr);
  (void)give(block);
}

void free_graph_memory_on(const std::shared_ptr<Stream>& stream, Block& block) {
  require(block.taken != nullptr);
  enqueue(stream, {.settle = [memory = give(block)] {}});
}

void credit_graph_memory(const Block& block) {
  Device& device = *block.pool->device;
  device.credit(block.charged);
  device.graph_reserved -= block.charged;
  if (block.taken) device.graph_used -= block.charged;
}

}  // namespace weir::standin

namespace {

using namespace weir::standin;

/// Adds the result of `add` to a graph, behind all its nodes and so also behind `dependencies`.
template <typename Add>
CUresult add_node(const char* name, CUgraphNode* node, CUgraph handle,
                  const CUgraphNode* dependencies, std::size_t count, Add add) {
  return api(name, Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Graph>& graph = call.driver.graphs.get(handle);
    require(node != nullptr && (dependencies != nullptr || count == 0));
    add(call, *graph);
    graph->nodes.push_back({.is_memory = true});
    *node = reinterpret_cast<CUgraphNode>(call.driver.next_node += 16);
  });
}

/// `Parameters` are those of the node's own function, or of cuGraphAddNode.
template <typename Parameters>
void add_allocation(Call& call, Graph& graph, Parameters* parameters) {
  require(parameters != nullptr && parameters->bytesize != 0);
  const CUmemPoolProps& wanted = parameters->poolProps;
  require(wanted.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
              wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE,
          CUDA_ERROR_NOT_SUPPORTED);
  const Device& device = get_device(call.driver, wanted.location.id, CUDA_ERROR_INVALID_VALUE);
  parameters->dptr = allocate_in_graph(call, graph, device.default_pool, parameters->bytesize);
}

void add_free(Call& call, Graph& graph, CUdeviceptr pointer) {
  const auto found = call.driver.blocks.find(pointer);
  free_in_graph(graph, nullptr, found == call.driver.blocks.end() ? nullptr : &found->second);
}

#if CUDA_VERSION >= 12020
/// Other types of nodes come only from captures.
CUresult add_any(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                 std::size_t count, CUgraphNodeParams* parameters) {
  const auto add = [&](Call& call, Graph& graph) {
    require(parameters != nullptr);
    if (parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      return add_allocation(call, graph, &parameters->alloc);
    }
    require(parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE, CUDA_ERROR_NOT_SUPPORTED);
    add_free(call, graph, parameters->free.dptr);
  };
  return add_node("cuGraphAddNode", node, handle, dependencies, count, add);
}
#endif

template <typename Body>
CUresult on_graphs_of(const char* name, CUdevice ordinal, Body body) {
  return api(name, Needs::kDriver, [&](Call& call) { body(get_device(call.driver, ordinal)); });
}

}  // namespace

extern "C" {

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return add_node("cuGraphAddMemAllocNode", node, handle, dependencies, count,
                  [&](Call& call, Graph& graph) { add_allocation(call, graph, parameters); });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr pointer) {
  return add_node("cuGraphAddMemFreeNode", node, handle, dependencies, count,
                  [&](Call& call, Graph& graph) { add_free(call, graph, pointer); });
}

#if CUDA_VERSION >= 12020
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                        size_t count, CUgraphNodeParams* parameters) {
  return add_any(node, graph, dependencies, count, parameters);
}
#endif
#if CUDA_VERSION >= 12030
CUresult cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* /*edges*/, size_t count,
                           CUgraphNodeParams* parameters) {
  return add_any(node, graph, dependencies, count, parameters);
}
#endif

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  return on_graphs_of("cuDeviceGetGraphMemAttribute", ordinal, [&](const Device& device) {
    require(value != nullptr);
    auto& bytes = *static_cast<cuuint64_t*>(value);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        bytes = device.graph_used;
        return;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        bytes = device.graph_used_high;
        return;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        bytes = device.graph_reserved;
        return;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        bytes = device.graph_reserved_high;
        return;
    }
    pass(CUDA_ERROR_INVALID_VALUE);
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  return on_graphs_of("cuDeviceSetGraphMemAttribute", ordinal, [&](Device& device) {
    const bool used = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    require(value != nullptr && *static_cast<cuuint64_t*>(value) == 0 &&
            (used || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH));
    (used ? device.graph_used_high : device.graph_reserved_high) =
        used ? device.graph_used : device.graph_reserved;
  });
}

// There is nothing to trim: a graph's memory is released with the graph.
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return on_graphs_of("cuDeviceGraphMemTrim", ordinal, [](const Device& /*device*/) {});
}

}  // extern "C"
