#pragma once

// Memory that graphs allocate. It is taken of the device when the allocation is captured, and given
// back once the graph, what was instantiated of it and its launches are gone. In between a launch
// takes it for the program's use, and a free gives it back to the graph.

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {

/// One allocation. Everything that holds one lets go of it under the lock.
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
/// is what `graph` will be added to, or null.
CUresult free_in_graph(Graph& graph, const Graph* before, const Block* block);

/// What a launch does with the memory, at the time of the call: an error, and nothing, when the
/// launch before still has it.
CUresult launch_memory(Driver& driver, const GraphExec& exec);
/// The program gives back what a launch took.
CUresult free_graph_memory(Block& block);
/// The same in a stream's order, for as long as the memory has to stay.
CUresult free_graph_memory_on(const std::shared_ptr<Stream>& stream, Block& block);
/// The block goes.
void credit_graph_memory(const Block& block);

}  // namespace weir::standin
