#include "tests/standin/driver/memory/graph_memory.hpp"

#include <algorithm>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/stream.hpp"

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

CUresult allocate_in_graph(Call& call, Graph& graph, const std::shared_ptr<Pool>& pool,
                           std::size_t bytes, CUdeviceptr* pointer) {
  if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  Device& device = *pool->device;
  const std::size_t charged = round_up(bytes, kPage);
  if (!device.charge(charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = take_memory(BlockKind::kGraph, bytes);
  if (memory == nullptr) {
    device.credit(charged);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  device.graph_reserved += charged;
  device.graph_reserved_high = std::max(device.graph_reserved_high, device.graph_reserved);
  const auto made = std::make_shared<GraphMemory>();
  *pointer = made->base = reinterpret_cast<std::uintptr_t>(memory);
  graph.taken.push_back(made);
  add_block(call.driver, made->base,
            {.kind = BlockKind::kGraph,
             .bytes = bytes,
             .charged = charged,
             .context = call.context,
             .pool = pool,
             .graph = made.get()});
  return CUDA_SUCCESS;
}

CUresult free_in_graph(Graph& graph, const Graph* before, const Block* block) {
  if (block == nullptr || block->kind != BlockKind::kGraph) return CUDA_ERROR_INVALID_VALUE;
  GraphMemory& memory = *block->graph;
  const auto given = memory.shared_from_this();
  if (memory.given_inside) return CUDA_ERROR_INVALID_VALUE;
  if (std::find(graph.given.begin(), graph.given.end(), given) != graph.given.end()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  memory.given_inside = takes(graph, memory) || (before != nullptr && takes(*before, memory));
  graph.given.push_back(given);
  return CUDA_SUCCESS;
}

CUresult launch_memory(Driver& driver, const GraphExec& exec) {
  const Graph& graph = *exec.graph;
  for (const auto& memory : graph.taken) {
    const Block* block = block_of(driver, *memory);
    if (block == nullptr || (block->taken && !exec.frees_on_launch)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  for (const auto& memory : graph.given) {
    const Block* block = block_of(driver, *memory);
    const bool there = block != nullptr && (takes(graph, *memory) || block->taken);
    if (!there) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& memory : graph.taken) {
    Block& block = *block_of(driver, *memory);
    if (block.taken) (void)give(block);
    take(block);
  }
  for (const auto& memory : graph.given) (void)give(*block_of(driver, *memory));
  return CUDA_SUCCESS;
}

CUresult free_graph_memory(Block& block) {
  if (!block.taken) return CUDA_ERROR_INVALID_VALUE;
  (void)give(block);
  return CUDA_SUCCESS;
}

CUresult free_graph_memory_on(const std::shared_ptr<Stream>& stream, Block& block) {
  if (!block.taken) return CUDA_ERROR_INVALID_VALUE;
  enqueue(stream, {.settle = [memory = give(block)] {}});
  return CUDA_SUCCESS;
}

void credit_graph_memory(const Block& block) {
  Device& device = *block.pool->device;
  device.credit(block.charged);
  device.graph_reserved -= block.charged;
  if (block.taken) device.graph_used -= block.charged;
}

}  // namespace weir::standin
