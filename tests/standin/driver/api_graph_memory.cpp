// Nodes of graphs that take and give memory, and how much of a device graphs have.

#include "tests/standin/driver/graph_memory.hpp"

namespace {

using namespace weir::standin;

/// Adds to a graph what `add` makes of it, behind all its nodes: so it is behind `dependencies`
/// too.
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
  return add_node("cuGraphAddMemAllocNode", node, graph, dependencies, count,
                  [&](Call& call, Graph& into) {
                    if (parameters == nullptr || parameters->bytesize == 0)
                      return CUDA_ERROR_INVALID_VALUE;
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

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies,
                               size_t count, CUdeviceptr pointer) {
  return add_node("cuGraphAddMemFreeNode", node, graph, dependencies, count,
                  [&](Call& call, Graph& into) {
                    const auto found = call.driver.blocks.find(pointer);
                    const bool known = found != call.driver.blocks.end();
                    return free_in_graph(into, nullptr, known ? &found->second : nullptr);
                  });
}

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

// There is nothing to trim: what a graph took goes with it.
CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return with_device("cuDeviceGraphMemTrim", ordinal,
                     [](Device& /*device*/) { return CUDA_SUCCESS; });
}

}  // extern "C"
