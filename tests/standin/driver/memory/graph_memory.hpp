#pragma once

// Memory that graphs allocate. The capture of the allocation takes it from the device. It is
// released once the graph, its instances and launches are gone. Meanwhile a launch gives it to the
// program, and a free returns it to the graph.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// One allocation. All holders drop it under the lock.
struct GraphMemory : std::enable_shared_from_this<GraphMemory> {
  GraphMemory() = default;
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;
  ~GraphMemory();

  std::uintptr_t base = 0;
  bool given_inside = false;  ///< by the graph that takes it
};

/// Adds an allocation to `graph`, without a node for it.
CUresult allocate_in_graph(Call& call, Graph& graph, const std::shared_ptr<Pool>& pool,
                           std::size_t bytes, CUdeviceptr* pointer);
/// Adds the free of an allocation, of this graph or of another one, without a node for it. `before`
/// is the graph that `graph` will be added to, or null.
CUresult free_in_graph(Graph& graph, const Graph* before, const Block* block);

/// Gives a launch its memory, at the time of the call. Returns an error and does nothing while the
/// previous launch still has it.
CUresult launch_memory(Driver& driver, const GraphExec& exec);
/// The program frees memory of a launch.
CUresult free_graph_memory(Block& block);
/// The same in a stream's order, as long as the memory must stay.
CUresult free_graph_memory_on(const std::shared_ptr<Stream>& stream, Block& block);
/// The block goes.
void credit_graph_memory(const Block& block);

}  // namespace weir::standin
