// Nodes of graphs that allocate and free memory, and the memory of a device that graphs have.

#include "tests/standin/driver/memory/graph_memory.hpp"

#undef cuGraphAddNode

namespace {

using namespace weir::standin;

/// Adds the result of `add` to a graph, behind all its nodes and so also behind `dependencies`.
template <typename Add>
CUresult add_node(const char* name, CUgraphNode* node, CUgraph handle,
                  const CUgraphNode* dependencies, std::size_t count, Add add) {
  return api(name, Needs::kContext, [&](Call& call) {
    const auto* graph = call.driver.graphs.find(handle);
    if (graph == nullptr || node == nullptr || (dependencies == nullptr && count != 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult result = add(call, **graph);
    if (result != CUDA_SUCCESS) return result;
    (*graph)->nodes.push_back({.is_memory = true});
    *node = reinterpret_cast<CUgraphNode>(call.driver.next_node += 16);
    return CUDA_SUCCESS;
  });
}

/// `Parameters` are those of the node's own function, or of cuGraphAddNode.
template <typename Parameters>
CUresult add_allocation(const char* name, CUgraphNode* node, CUgraph graph,
                        const CUgraphNode* dependencies, std::size_t count,
                        Parameters* parameters) {
  return add_node(name, node, graph, dependencies, count, [&](Call& call, Graph& into) {
    if (parameters == nullptr || parameters->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    const CUmemPoolProps& wanted = parameters->poolProps;
    if (wanted.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const Device* device = find_device(call.driver, wanted.location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return allocate_in_graph(call, into, device->default_pool, parameters->bytesize,
                             &parameters->dptr);
  });
}

CUresult add_free(const char* name, CUgraphNode* node, CUgraph graph,
                  const CUgraphNode* dependencies, std::size_t count, CUdeviceptr pointer) {
  return add_node(name, node, graph, dependencies, count, [&](Call& call, Graph& into) {
    const auto found = call.driver.blocks.find(pointer);
    const bool known = found != call.driver.blocks.end();
    return free_in_graph(into, nullptr, known ? &found->second : nullptr);
  });
}

#if CUDA_VERSION >= 12020
/// Other types of nodes come only from captures.
CUresult add_any(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                 std::size_t count, CUgraphNodeParams* parameters) {
  constexpr const char* kName = "cuGraphAddNode";
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    return add_allocation(kName, node, graph, dependencies, count, &parameters->alloc);
  }
  if (parameters != nullptr && parameters->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return add_free(kName, node, graph, dependencies, count, parameters->free.dptr);
  }
  return api(kName, Needs::kContext, [&](Call& /*call*/) {
    return parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  });
}
#endif

template <typename Body>
CUresult with_device(const char* name, CUdevice ordinal, Body body) {
  return api(name, Needs::kDriver, [&](Call& call) {
    Device* device = find_device(call.driver, ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

}  // namespace

extern "C" {

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  return add_allocation("cuGraphAddMemAllocNode", node, graph, dependencies, count, parameters);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr pointer) {
  return add_free("cuGraphAddMemFreeNode", node, graph, dependencies, count, pointer);
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
  return with_device("cuDeviceGetGraphMemAttribute", ordinal, [&](const Device& device) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto& bytes = *static_cast<cuuint64_t*>(value);
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        bytes = device.graph_used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        bytes = device.graph_used_high;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        bytes = device.graph_reserved;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        bytes = device.graph_reserved_high;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute,
                                      void* value) {
  return with_device("cuDeviceSetGraphMemAttribute", ordinal, [&](Device& device) {
    if (value == nullptr || *static_cast<cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
      case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        device.graph_used_high = device.graph_used;
        return CUDA_SUCCESS;
      case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        device.graph_reserved_high = device.graph_reserved;
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  });
}

// There is nothing to trim: a graph's memory is released with the graph.
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return with_device("cuDeviceGraphMemTrim", ordinal,
                     [](Device& /*device*/) { return CUDA_SUCCESS; });
}

}  // extern "C"
