#include "tests/standin/driver/driver.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "tests/standin/driver/capture.hpp"
#include "tests/standin/driver/memory.hpp"
#include "tests/standin/driver/stream.hpp"

namespace weir::standin {
namespace {

std::atomic<bool> forked{false};

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

}  // namespace

Driver::Driver() {
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
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
  device_count =
      static_cast<int>(std::min<std::uint64_t>(number_of("WEIR_STANDIN_DEVICES", 1), kMostDevices));
  version = static_cast<int>(number_of("WEIR_STANDIN_DRIVER_VERSION", CUDA_VERSION));
  const std::size_t bytes = number_of("WEIR_STANDIN_MEMORY", std::size_t{1} << 30);
  for (Device& device : devices) device.total = bytes;
}

Driver& driver() {
  static auto* const kDriver = new Driver;
  return *kDriver;
}

Thread& this_thread() {
  thread_local Thread thread;
  return thread;
}

bool Device::charge(std::size_t bytes) {
  if (bytes > total || used > total - bytes) return false;
  used += bytes;
  peak = std::max(peak, used);
  return true;
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

bool is_forked() { return forked; }

CUresult enter(Call& call, const char* name, Needs needs) {
  const int fault = count_call(call.driver, name);
  if (fault != 0) return static_cast<CUresult>(fault);
  if (needs == Needs::kNothing) return CUDA_SUCCESS;
  if (!call.driver.initialized) return CUDA_ERROR_NOT_INITIALIZED;
  if (this_thread().in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (needs == Needs::kDriver) return CUDA_SUCCESS;
  if (this_thread().contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  call.context = find_context(call.driver, this_thread().contexts.back());
  if (call.context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (call.context->broken != CUDA_SUCCESS) return call.context->broken;
  return needs == Needs::kCanCapture ? refuse_unsafe(call.driver) : CUDA_SUCCESS;
}

Context* find_context(Driver& driver, CUcontext handle) {
  const auto* found = driver.contexts.find(handle);
  return found != nullptr && (*found)->active ? found->get() : nullptr;
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
  context.broken = CUDA_SUCCESS;
}

}  // namespace weir::standin
