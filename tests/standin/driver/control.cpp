// The functions by which tests control and query the driver.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"
#include "tests/standin/standin.hpp"

namespace {

using namespace weir::standin;

CUstream all_streams() { return reinterpret_cast<CUstream>(UINTPTR_MAX); }

/// The stream that is meant, without a look at faults or at the state of its context.
std::shared_ptr<Stream> stream_of(Call& call, CUstream handle) {
  if (!this_thread().contexts.empty()) {
    call.context = find_context(call.driver, this_thread().contexts.back());
  }
  const bool is_default =
      handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (is_default && call.context == nullptr) return nullptr;
  return find_stream(call, handle);
}

void wake_all(Driver& driver) {
  for (const auto& [handle, context] : driver.contexts.all()) {
    for (const auto& stream : context->streams) stream->work.notify_all();
  }
}

void set_held(CUstream handle, bool held) {
  control([&](Call& call) {
    if (handle == all_streams()) {
      call.driver.held = held;
      wake_all(call.driver);
    } else if (const auto stream = stream_of(call, handle); stream) {
      stream->held = held;
      stream->work.notify_all();
    }
  });
}

std::size_t used_by(int device, std::size_t Device::*bytes) {
  return control([&](Call& call) {
    if (device < 0 || device >= kMostDevices) return std::size_t{0};
    return call.driver.devices.at(static_cast<std::size_t>(device)).*bytes;
  });
}

struct Interrupt {
  const char* name = nullptr;
  void (*run)(void*) = nullptr;
  void* data = nullptr;
};
std::atomic<const Interrupt*> set_interrupt{nullptr};
std::atomic<std::uint64_t> interrupted{0};
thread_local bool in_interrupt = false;

}  // namespace

void weir::standin::interrupt(const char* name) {
  const Interrupt* const now = set_interrupt.load(std::memory_order_acquire);
  if (now == nullptr || in_interrupt || is_forked() || std::strcmp(now->name, name) != 0) return;
  in_interrupt = true;
  ++interrupted;
  now->run(now->data);
  in_interrupt = false;
}

extern "C" {

void weir_standin_set_interrupt(const char* name, void (*run)(void* data), void* data) {
  control([&](Call& /*call*/) {
    // Never freed: a call may be about to run it.
    static auto* const kKept = new std::vector<std::unique_ptr<Interrupt>>;
    if (run != nullptr) kKept->push_back(std::make_unique<Interrupt>(Interrupt{name, run, data}));
    set_interrupt.store(run != nullptr ? kKept->back().get() : nullptr);
  });
}

std::uint64_t weir_standin_interrupted(void) { return interrupted.exchange(0); }

void weir_standin_run_locked(void (*run)(void* data), void* data) {
  control([&](Call& /*call*/) { run(data); });
}

void weir_standin_set_devices(int count) {
  control([&](Call& call) { call.driver.device_count = std::clamp(count, 0, kMostDevices); });
}

void weir_standin_set_memory(std::size_t bytes) {
  control([&](Call& call) {
    for (Device& device : call.driver.devices) device.total = bytes;
  });
}

#define SETTER(name, type, member, value)                     \
  void weir_standin_set_##name(type given) {                  \
    control([&](Call& call) { call.driver.member = value; }); \
  }
SETTER(context_memory, std::size_t, context_memory, given)
SETTER(module_memory, std::size_t, module_memory, given)
SETTER(loads_meet, int, loads_to_meet, given)
SETTER(pages_supported, int, pages_supported, given != 0)
SETTER(driver_version, int, version, given)
#define SWITCH(member, variable) SETTER(member, int, member, given != 0)
WEIR_STANDIN_SWITCHES(SWITCH)
#undef SWITCH
#undef SETTER

void weir_standin_reset(void) {
  control([](Call& call) {
    Driver& the_driver = call.driver;
    the_driver.held = false;
    the_driver.delay = {};
    std::vector<std::shared_ptr<Context>> contexts;
    for (const auto& [handle, context] : the_driver.contexts.all()) contexts.push_back(context);
    for (const auto& context : contexts) {
      for (const auto& stream : context->streams) stream->held = false;
    }
    wake_all(the_driver);
    for (const auto& context : contexts) {
      clear_context(call, *context);
      if (!context->primary) the_driver.contexts.remove(context->handle);
    }
    forget_pages(the_driver);
    the_driver.graphs.all().clear();
    the_driver.graph_execs.all().clear();
    the_driver.user_objects.all().clear();
    for (Device& device : the_driver.devices) {
      device.pool = device.default_pool;
      *device.default_pool = {.device = &device,
                              .handle = device.default_pool->handle,
                              .reserved = device.default_pool->reserved};
      trim_pool(*device.default_pool, 0);
      *device.default_pool = {.device = &device, .handle = device.default_pool->handle};
    }
    std::erase_if(the_driver.pools.all(), [](const auto& entry) {
      Pool& pool = *entry.second;
      if (&pool == pool.device->default_pool.get()) return false;
      trim_pool(pool, 0);
      return true;
    });
    the_driver.calls.clear();
    the_driver.faults.clear();
    the_driver.kernel_faults.clear();
    the_driver.blocking_records = 0;
    the_driver.late_uses = 0;
    the_driver.read_settings();
    for (Device& device : the_driver.devices) {
      // Existing primary contexts stay, as large as the settings are now.
      if (device.primary->active) {
        try {
          begin_context(the_driver, *device.primary);
        } catch (const Refused&) {
          device.primary->active = false;
        }
      }
      device.peak = device.used;
      device.graph_used_high = device.graph_reserved_high = 0;
    }
  });
}

void weir_standin_fail(const char* name, std::uint64_t nth, int code, WeirStandinLasting lasting) {
  control([&](Call& call) {
    call.driver.faults.push_back(
        {name, std::max<std::uint64_t>(nth, 1), code, lasting == kWeirStandinFromThenOn});
  });
}

void weir_standin_fail_kernel(std::uint64_t nth, CUresult code) {
  control([&](Call& call) {
    call.driver.kernel_faults.push_back({"", std::max<std::uint64_t>(nth, 1), code, false});
  });
}

void weir_standin_clear_faults(void) {
  control([](Call& call) {
    call.driver.faults.clear();
    call.driver.kernel_faults.clear();
    for (const auto& [handle, context] : call.driver.contexts.all()) context->broken = CUDA_SUCCESS;
  });
}

void weir_standin_delay(CUstream handle, std::uint64_t nanoseconds) {
  control([&](Call& call) {
    const std::chrono::nanoseconds delay(nanoseconds);
    if (handle == all_streams()) {
      call.driver.delay = delay;
    } else if (const auto stream = stream_of(call, handle); stream) {
      stream->delay = delay;
    }
  });
}

void weir_standin_hold(CUstream stream) { set_held(stream, true); }
void weir_standin_release(CUstream stream) { set_held(stream, false); }
CUstream weir_standin_all_streams(void) { return all_streams(); }

std::size_t weir_standin_pending(CUstream handle) {
  return control([&](Call& call) -> std::size_t {
    if (handle == all_streams()) {
      std::size_t pending = 0;
      for (const auto& [key, context] : call.driver.contexts.all()) {
        for (const auto& stream : context->streams) pending += stream->enqueued - stream->ended;
      }
      return pending;
    }
    const auto stream = stream_of(call, handle);
    return stream ? stream->enqueued - stream->ended : 0;
  });
}

std::uint64_t weir_standin_calls(const char* name) {
  return control([&](Call& call) {
    std::uint64_t calls = 0;
    for (const auto& [known, count] : call.driver.calls) {
      if (name == nullptr || known == name) calls += count;
    }
    return calls;
  });
}

std::uint64_t weir_standin_refused(const char* name) {
  return control([&](Call& call) {
    std::uint64_t refused = 0;
    for (const auto& [its, count] : call.driver.refused) {
      if (name == nullptr || its.first == name) refused += count;
    }
    return refused;
  });
}

void weir_standin_take_refused(void (*tell)(void*, const WeirStandinRefused*), void* data) {
  const auto taken = control([](Call& call) { return std::exchange(call.driver.refused, {}); });
  for (const auto& [call, count] : taken) {
    const WeirStandinRefused refused{call.first.c_str(), call.second, count};
    tell(data, &refused);
  }
}

void weir_standin_refuse_runtime(int code) {
  if (code == CUDA_SUCCESS) {
    this_thread().last_result = CUDA_SUCCESS;
    return;
  }
  if (code == CUDA_ERROR_NOT_READY || code == this_thread().last_result) return;
  control([&](Call& call) { ++call.driver.refused[{"cudart", code}]; });
}

void weir_standin_clear_counters(void) {
  control([](Call& call) {
    call.driver.calls.clear();
    for (Device& device : call.driver.devices) device.peak = device.used;
  });
}

std::size_t weir_standin_used(int device) { return used_by(device, &Device::used); }
std::size_t weir_standin_peak(int device) { return used_by(device, &Device::peak); }

int weir_standin_take_fault(const char* name) {
  return control([&](Call& call) { return count_call(call.driver, name); });
}

std::uint64_t weir_standin_blocking_records(void) {
  return control([](Call& call) { return call.driver.blocking_records; });
}

std::uint64_t weir_standin_late_uses(void) {
  return control([](Call& call) { return call.driver.late_uses; });
}

WeirStandinLive weir_standin_live(void) {
  return control([](Call& call) {
    Driver& the_driver = call.driver;
    WeirStandinLive live{};
    live.streams = the_driver.streams.all().size();
    live.events = the_driver.events.all().size();
    for (const auto& [base, block] : the_driver.blocks) {
      if (is_of_device(block.kind)) {
        ++live.device_blocks;
        live.device_bytes += block.bytes;
        if (block.on_host && block.accessed) live.host_preferred_bytes += block.bytes;
      } else {
        ++live.host_blocks;
      }
    }
    live.pools = the_driver.pools.all().size() - the_driver.devices.size();
    live.physical = the_driver.pages.size();
    live.reservations = the_driver.reservations.size();
    live.mappings = the_driver.mappings.size();
    live.graphs = the_driver.graphs.all().size() + the_driver.graph_execs.all().size();
    live.arrays = the_driver.arrays.all().size() + the_driver.mipmapped_arrays.all().size();
    live.modules = the_driver.modules.all().size();
    return live;
  });
}

}  // extern "C"
