// Objects of the program that live as long as the graphs that have them.

#include <thread>

#include "tests/standin/driver/driver.hpp"

namespace weir::standin {
namespace {

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
CUresult take_references(Driver& driver, CUuserObject handle, unsigned int count) {
  auto* const owned = driver.user_objects.find(handle);
  if (owned == nullptr || count == 0 || count > owned->references) return CUDA_ERROR_INVALID_VALUE;
  owned->references -= count;
  if (owned->references == 0) driver.user_objects.remove(handle);
  return CUDA_SUCCESS;
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

using namespace weir::standin;

extern "C" {

CUresult cuUserObjectCreate(CUuserObject* handle, void* data, CUhostFn destroy,
                            unsigned int references, unsigned int flags) {
  return api("cuUserObjectCreate", Needs::kDriver, [&](Call& call) {
    if (handle == nullptr || destroy == nullptr || references == 0 ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = call.driver.user_objects.add(
        {.object = std::make_shared<UserObject>(destroy, data), .references = references});
    return CUDA_SUCCESS;
  });
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count) {
  return api("cuUserObjectRelease", Needs::kDriver,
             [&](Call& call) { return take_references(call.driver, handle, count); });
}

CUresult cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned int count,
                                 unsigned int flags) {
  return api("cuGraphRetainUserObject", Needs::kDriver, [&](Call& call) {
    const auto* const graph = call.driver.graphs.find(graph_handle);
    const auto* const owned = call.driver.user_objects.find(handle);
    if (graph == nullptr || owned == nullptr || count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::shared_ptr<UserObject> object = owned->object;
    if (flags == CU_GRAPH_USER_OBJECT_MOVE) {
      const CUresult code = take_references(call.driver, handle, count);
      if (code != CUDA_SUCCESS) return code;
    }
    (*graph)->objects.push_back(object);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
