#include "tests/standin/driver/driver.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace weir::standin {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  switch (*end) {
    case 'K':
      return number << 10;
    case 'M':
      return number << 20;
    case 'G':
      return number << 30;
    default:
      return number;
  }
}

/// Drops arrays, modules and permissions, which end with a context and need no stream.
void drop_objects_of(Driver& driver, Context& context) {
  const auto of_it = [&](const auto& entry) {
    if (entry.second.context != &context) return false;
    context.device->credit(entry.second.charged);
    return true;
  };
  std::erase_if(driver.arrays.all(), of_it);
  std::erase_if(driver.mipmapped_arrays.all(), of_it);
  std::erase_if(driver.modules.all(), of_it);
  // Libraries belong to no context; only their code's memory does.
  for (auto& entry : driver.libraries.all()) {
    if (of_it(entry)) entry.second = {};
  }
  context.peers.clear();
  for (const auto& [handle, other] : driver.contexts.all()) other->peers.erase(&context);
}

}  // namespace

Driver::Driver() {
  for (int i = 0; i < kMostDevices; ++i) {
    Device& device = devices.at(static_cast<std::size_t>(i));
    device.ordinal = i;
    device.primary = std::make_shared<Context>();
    device.primary->device = &device;
    device.primary->primary = true;
    device.primary->active = false;
    device.primary->handle = contexts.add(device.primary);
    device.default_pool = std::make_shared<Pool>();
    device.default_pool->device = &device;
    device.default_pool->handle = pools.add(device.default_pool);
    device.pool = device.default_pool;
  }
  read_settings();
}

void Driver::read_settings() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    return number_of((std::string("WEIR_STANDIN_") + name).c_str(), otherwise);
  };
  device_count = static_cast<int>(std::min<std::uint64_t>(number("DEVICES", 1), kMostDevices));
  version = static_cast<int>(number("DRIVER_VERSION", static_cast<unsigned>(built_version())));
  for (Device& device : devices) device.total = number("MEMORY", std::size_t{1} << 30);
  context_memory = number("CONTEXT_MEMORY", 0);
  module_memory = number("MODULE_MEMORY", 0);
  loads_to_meet = 0;
  pages_supported = true;
#define SWITCH(member, variable) member = number(variable, 0) != 0;
  WEIR_STANDIN_SWITCHES(SWITCH)
#undef SWITCH
}

Driver& driver() {
  begin_use();
  static auto* const kDriver = new Driver;
  return *kDriver;
}

Thread& this_thread() {
  // Programs also call the driver in exit handlers, when thread_local variables of the thread that
  // ends the process are destroyed. The main thread keeps its contexts, another thread starts
  // without.
  static constinit thread_local Thread* mine = nullptr;
  struct End {
    ~End() {
      if (gettid() != getpid()) delete std::exchange(mine, nullptr);
    }
  };
  if (mine == nullptr) {
    mine = new Thread;
    static thread_local const End kEnd;
    (void)kEnd;
  }
  return *mine;
}

void Device::charge(std::size_t bytes) {
  if (bytes == 0) return;
  require(bytes <= total && used <= total - bytes, CUDA_ERROR_OUT_OF_MEMORY);
  used += bytes;
  peak = std::max(peak, used);
}

int count_call(Driver& driver, const char* name) {
  ++driver.calls[name];
  int code = 0;
  for (Fault& fault : driver.faults) {
    if (fault.name != name) continue;
    if (fault.left > 0) --fault.left;
    if (fault.left > 0) continue;
    code = fault.code;
    if (!fault.lasting) fault.name.clear();  // never the name of a call
  }
  return code;
}

void enter(Call& call, const char* name, Needs needs) {
  const int fault = count_call(call.driver, name);
  call.uncounted = fault != 0;  // the test that requested it has named it
  pass(static_cast<CUresult>(fault));
  if (needs == Needs::kNothing) return;
  require(call.driver.initialized, CUDA_ERROR_NOT_INITIALIZED);
  require(!this_thread().in_host_function, CUDA_ERROR_NOT_PERMITTED);
  if (needs == Needs::kContext || needs == Needs::kCanCapture) {
    require(!this_thread().contexts.empty(), CUDA_ERROR_INVALID_CONTEXT);
    call.context = find_context(call.driver, this_thread().contexts.back());
    require(call.context != nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    pass(call.context->broken);
  }
  // Whether these are unsafe calls to a driver is unverified; PyTorch maps pages in captures.
  const bool unsafe_pages = needs == Needs::kPages && !call.driver.pages_in_captures;
  if (needs == Needs::kCanCapture || unsafe_pages) refuse_unsafe(call.driver);
}

void leave(Call& call, const char* name, CUresult result) {
  this_thread().last_result = result;
  if (result == CUDA_SUCCESS || call.uncounted) return;
  if (result != CUDA_ERROR_NOT_READY) ++call.driver.refused[{name, result}];
}

Device& get_device(Driver& driver, CUdevice ordinal, CUresult otherwise) {
  require(ordinal >= 0 && ordinal < driver.device_count, otherwise);
  return driver.devices.at(static_cast<std::size_t>(ordinal));
}

Context* find_context(Driver& driver, CUcontext handle) {
  const auto* found = driver.contexts.find(handle);
  return found != nullptr && (*found)->active ? found->get() : nullptr;
}

void begin_context(Driver& driver, Context& context) {
  context.device->charge(driver.context_memory);
  context.charged = driver.context_memory;
  context.id = driver.next_context++;
  context.active = true;
}

void clear_context(Call& call, Context& context) {
  std::vector<std::shared_ptr<Stream>> streams(context.streams.begin(), context.streams.end());
  for (const auto& stream : streams) {
    leave_capture(call.driver, *stream);
    close_stream(*stream);
  }
  for (const auto& stream : streams) {
    stream->progress.wait(call.lock, [&] { return !context.streams.contains(stream); });
    call.driver.streams.remove(stream->handle);
  }
  context.legacy.reset();
  context.of_threads.clear();
  std::erase_if(call.driver.events.all(),
                [&](const auto& entry) { return entry.second->context == &context; });
  free_blocks_of(call.driver, context);
  drop_objects_of(call.driver, context);
  context.device->credit(context.charged);
  context.charged = 0;
  context.broken = CUDA_SUCCESS;
}

}  // namespace weir::standin
