// Graphs, whose nodes run in the order of their capture, and objects of the program that live as
// long as the graphs that have them.

#include <algorithm>
#include <thread>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace weir::standin {
namespace {

bool allocates_memory(const Graph& graph) { return !graph.taken.empty() || !graph.given.empty(); }

/// A graph that allocates memory can be instantiated once at a time.
bool is_instantiated(Driver& driver, const Graph& graph) {
  const auto overlap = [](const auto& one, const auto& other) {
    return std::find_first_of(one.begin(), one.end(), other.begin(), other.end()) != one.end();
  };
  const auto& execs = driver.graph_execs.all();
  return std::any_of(execs.begin(), execs.end(), [&](const auto& entry) {
    const Graph& other = *entry.second.graph;
    return overlap(graph.taken, other.taken) || overlap(graph.given, other.given);
  });
}

/// The driver's thread for objects. It runs permanently, as those of streams do.
[[noreturn]] void destroy_objects() {
  Driver& the_driver = driver();
  Lock lock(the_driver.mutex);
  for (;;) {
    the_driver.object_died.wait(lock, [&] { return !the_driver.dead_objects.empty(); });
    const auto [destroy, data] = the_driver.dead_objects.front();
    the_driver.dead_objects.pop_front();
    lock.unlock();
    this_thread().in_host_function = true;  // like a host function, it may not call CUDA
    destroy(data);
    lock.lock();
  }
}

/// Removes `count` of the program's references.
void take_references(Driver& driver, CUuserObject handle, unsigned int count) {
  Driver::OwnedObject& owned = driver.user_objects.get(handle);
  require(count != 0 && count <= owned.references);
  owned.references -= count;
  if (owned.references == 0) driver.user_objects.remove(handle);
}

/// Destroys a graph or an instance.
template <typename Handle, typename T>
CUresult destroy_graph(const char* name, Handles<Handle, T> Driver::*all, Handle handle) {
  return api(name, Needs::kDriver, [&](Call& call) {
    (void)(call.driver.*all).get(handle);
    (call.driver.*all).remove(handle);
  });
}

}  // namespace

UserObject::~UserObject() {
  Driver& the_driver = driver();
  the_driver.dead_objects.emplace_back(destroy, data);
  if (!the_driver.objects_served) std::thread(destroy_objects).detach();
  the_driver.objects_served = true;
  the_driver.object_died.notify_one();
}

}  // namespace weir::standin

extern "C" {

using namespace weir::standin;

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags) {
  return api("cuGraphCreate", Needs::kDriver, [&](Call& call) {
    require(graph != nullptr && flags == 0);
    *graph = call.driver.graphs.add(std::make_shared<Graph>());
  });
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph handle, unsigned long long flags) {
  return api("cuGraphInstantiate", Needs::kContext, [&](Call& call) {
    const Graph& graph = *call.driver.graphs.get(handle);
    require(exec != nullptr);
    require(!is_instantiated(call.driver, graph), CUDA_ERROR_NOT_SUPPORTED);
    // A copy: later additions to the graph do not affect the executable one.
    *exec = call.driver.graph_execs.add(
        {.graph = std::make_shared<Graph>(graph),
         .frees_on_launch = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0});
  });
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return api("cuGraphLaunch", Needs::kContext, [&](Call& call) {
    const GraphExec& exec = call.driver.graph_execs.get(handle);
    const std::shared_ptr<Graph> graph = exec.graph;
    const std::shared_ptr<Stream> stream = get_stream(call, stream_handle);
    check_implicit(call, *stream);
    if (allocates_memory(*graph)) {
      require(!stream->capture, CUDA_ERROR_NOT_SUPPORTED);  // a nested graph must not allocate
      launch_memory(call.driver, exec);
    }
    for (const Node& node : graph->nodes) {
      submit(call, stream,
             {.work = node.work,
              .is_kernel = node.is_kernel,
              .is_host_function = node.is_host_function,
              .touches = node.touches});
    }
    // Its memory and objects stay until the launch is over, even if the graph is destroyed.
    if (allocates_memory(*graph) || !graph->objects.empty()) {
      enqueue(stream, {.settle = [graph] {}});
    }
    end_launch(call, stream);
  });
}
WEIR_PTSZ(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, stream)

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return api("cuGraphGetNodes", Needs::kDriver, [&](Call& call) {
    const Graph& graph = *call.driver.graphs.get(handle);
    require(count != nullptr);
    require(nodes == nullptr, CUDA_ERROR_NOT_SUPPORTED);
    *count = 0;
    for (const Node& node : graph.nodes) *count += node.work || node.is_memory ? 1U : 0U;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return destroy_graph("cuGraphDestroy", &Driver::graphs, handle);
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return destroy_graph("cuGraphExecDestroy", &Driver::graph_execs, handle);
}

CUresult cuUserObjectCreate(CUuserObject* handle, void* data, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
  return api("cuUserObjectCreate", Needs::kDriver, [&](Call& call) {
    require(handle != nullptr && destroy != nullptr && references != 0 &&
            flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    *handle = call.driver.user_objects.add(
        {.object = std::make_shared<UserObject>(destroy, data), .references = references});
  });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  return api("cuUserObjectRelease", Needs::kDriver,
             [&](Call& call) { take_references(call.driver, handle, count); });
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  return api("cuGraphRetainUserObject", Needs::kDriver, [&](Call& call) {
    Graph& graph = *call.driver.graphs.get(graph_handle);
    const std::shared_ptr<UserObject> object = call.driver.user_objects.get(handle).object;
    require(count != 0 && flags <= CU_GRAPH_USER_OBJECT_MOVE);
    if (flags == CU_GRAPH_USER_OBJECT_MOVE) take_references(call.driver, handle, count);
    graph.objects.push_back(object);
  });
}

}  // extern "C"
