#include <algorithm>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/streams.hpp"

namespace weir::standin {
namespace {

CUresult due_kernel_fault(Driver& driver) {
  CUresult code = CUDA_SUCCESS;
  for (Fault& fault : driver.kernel_faults) {
    if (fault.left > 0 && --fault.left == 0) code = static_cast<CUresult>(fault.code);
  }
  return code;
}

/// A turn among host functions, if they run one at a time. It comes if each of them ends by itself:
/// one that waits for another may wait forever, as on a device.
class HostTurn {
 public:
  HostTurn(Driver& driver, Lock& lock, const Operation& operation)
      : driver_(driver), taken_(operation.is_host_function && driver.host_functions_serial) {
    if (!taken_) return;
    driver.host_function_ended.wait(lock, [&] { return !driver.in_host_function; });
    driver.in_host_function = true;
  }
  /// Under the lock.
  ~HostTurn() {
    if (!taken_) return;
    driver_.in_host_function = false;
    driver_.host_function_ended.notify_one();
  }
  HostTurn(const HostTurn&) = delete;
  HostTurn& operator=(const HostTurn&) = delete;

 private:
  Driver& driver_;
  const bool taken_;
};

void execute(Driver& driver, Lock& lock, Stream& stream, Operation operation) {
  for (const Point& point : operation.after) point.wait(lock);
  const HostTurn turn(driver, lock, operation);
  const auto delay = driver.delay + stream.delay;
  if (operation.is_kernel && stream.context->broken == CUDA_SUCCESS) {
    stream.context->broken = due_kernel_fault(driver);
  }
  if (operation.work && stream.context->broken == CUDA_SUCCESS &&
      !are_there(driver, operation.touches)) {
    // A device may not notice. Here the memory may belong to the heap again.
    ++driver.late_uses;
    stream.context->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  const CUresult broken = stream.context->broken;
  const bool runs = operation.work && broken == CUDA_SUCCESS;
  lock.unlock();
  if (delay.count() > 0) std::this_thread::sleep_for(delay);
  if (runs) operation.work();
  if (operation.report) operation.report(broken);
  operation.work = nullptr;  // its destructor may call the driver
  lock.lock();
  if (operation.settle) operation.settle();
}

void serve(Driver& the_driver, Lock& lock, const std::shared_ptr<Stream>& stream) {
  for (;;) {
    stream->work.wait(lock, [&] {
      if (stream->queue.empty()) return stream->closing;
      return !stream->held && !the_driver.held;
    });
    if (stream->queue.empty()) break;
    Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    execute(the_driver, lock, *stream, std::move(operation));
    ++stream->ended;
    stream->progress.notify_all();
  }
  stream->context->streams.erase(stream);
  stream->progress.notify_all();  // from here on the context may be destroyed
}

/// Serves streams permanently: a thread that ended by itself could do so while the process ends,
/// which a leak checker would report.
[[noreturn]] void serve_streams() {
  Driver& the_driver = driver();
  Lock lock(the_driver.mutex);
  for (;;) {
    ++the_driver.idle_threads;
    the_driver.stream_made.wait(lock, [&] { return !the_driver.unserved.empty(); });
    --the_driver.idle_threads;
    const std::shared_ptr<Stream> stream = std::move(the_driver.unserved.front());
    the_driver.unserved.pop_front();
    serve(the_driver, lock, stream);
  }
}

}  // namespace

bool Point::passed() const { return stream->ended >= sequence; }

void Point::wait(Lock& lock) const {
  stream->progress.wait(lock, [this] { return passed(); });
}

std::shared_ptr<Stream> make_stream(Context& context, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>();
  stream->context = &context;
  stream->flags = flags;
  stream->priority = priority;
  context.streams.insert(stream);
  Driver& the_driver = driver();
  the_driver.unserved.push_back(stream);
  // Nobody waits for a thread: a destroyed stream finishes its work.
  if (the_driver.idle_threads < the_driver.unserved.size()) std::thread(serve_streams).detach();
  the_driver.stream_made.notify_one();
  return stream;
}

void close_stream(Stream& stream) {
  stream.closing = true;
  stream.work.notify_all();
}

std::shared_ptr<Stream> find_stream(Call& call, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) {
    auto& legacy = call.context->legacy;
    if (!legacy) legacy = make_stream(*call.context, CU_STREAM_DEFAULT, 0);
    return legacy;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    auto& own = call.context->of_threads[std::this_thread::get_id()];
    if (!own) own = make_stream(*call.context, CU_STREAM_DEFAULT, 0);
    return own;
  }
  const auto* found = call.driver.streams.find(handle);
  return found == nullptr ? nullptr : *found;
}

std::shared_ptr<Stream> get_stream(Call& call, CUstream handle) {
  std::shared_ptr<Stream> found = find_stream(call, handle);
  require(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return found;
}

void enqueue(const std::shared_ptr<Stream>& stream, Operation operation) {
  Context& context = *stream->context;
  if (stream == context.legacy) {
    const std::vector<Point> all = points_of(stream);
    operation.after.insert(operation.after.end(), all.begin(), all.end());
  } else if (stream->blocking() && context.legacy) {
    operation.after.push_back({context.legacy, context.legacy->enqueued});
  }
  // A stream's own order needs no wait, and a wait for itself would never end.
  std::erase_if(operation.after,
                [&](const Point& point) { return point.stream == stream || point.passed(); });
  stream->queue.push_back(std::move(operation));
  ++stream->enqueued;
  stream->work.notify_all();
}

void submit(Call& call, const std::shared_ptr<Stream>& stream, Operation operation) {
  check_implicit(call, *stream);
  if (!stream->capture) return enqueue(stream, std::move(operation));
  add_to_capture(*stream, {.work = std::move(operation.work),
                           .is_kernel = operation.is_kernel,
                           .is_host_function = operation.is_host_function,
                           .touches = std::move(operation.touches)});
}

std::vector<Point> points_of(const std::shared_ptr<Stream>& stream) {
  std::vector<Point> points{{stream, stream->enqueued}};
  if (stream == stream->context->legacy) {
    for (const auto& other : stream->context->streams) {
      if (other != stream && other->blocking()) points.push_back({other, other->enqueued});
    }
  }
  return points;
}

void wait_for(Call& call, const std::vector<Point>& points) {
  for (const Point& point : points) point.wait(call.lock);
}

void end_launch(Call& call, const std::shared_ptr<Stream>& stream) {
  if (!call.driver.launches_block || stream->capture) return;
  wait_for(call, {{stream, stream->enqueued}});
}

bool is_idle(const Stream& stream) {
  if (stream.ended != stream.enqueued) return false;
  const Context& context = *stream.context;
  return &stream != context.legacy.get() ||
         std::ranges::all_of(context.streams, [](const auto& other) {
           return !other->blocking() || other->ended == other->enqueued;
         });
}

void wait_for_context(Call& call, Context& context) {
  std::vector<Point> points;
  for (const auto& stream : context.streams) points.push_back({stream, stream->enqueued});
  wait_for(call, points);
}

void wait_for_device(Call& call, Device& device) {
  std::vector<std::shared_ptr<Context>> contexts;
  for (const auto& [handle, context] : call.driver.contexts.all()) {
    if (context->device == &device) contexts.push_back(context);
  }
  for (const auto& context : contexts) wait_for_context(call, *context);
}

}  // namespace weir::standin

namespace {

using namespace weir::standin;

CUresult create_stream(const char* name, CUstream* handle, unsigned int flags, int priority) {
  return api(name, Needs::kContext, [&](Call& call) {
    require(handle != nullptr && flags <= CU_STREAM_NON_BLOCKING);
    const std::shared_ptr<Stream> stream = make_stream(*call.context, flags, priority);
    *handle = stream->handle = call.driver.streams.add(stream);
  });
}

/// A query of a stream, which a capture forbids.
template <typename Body>
CUresult ask_stream(const char* name, CUstream handle, Body body) {
  return api(name, Needs::kCanCapture, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    refuse_capturing(*stream);
    check_implicit(call, *stream);
    return body(call, stream);
  });
}

template <typename T, typename Get>
CUresult stream_property(const char* name, CUstream handle, T* out, Get get) {
  return api(name, Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    given(out) = get(*stream);
  });
}

/// As work of the program, which may not call CUDA.
template <typename F, typename... A>
void run_on_host(F function, A... arguments) {
  this_thread().in_host_function = true;
  function(arguments...);
  this_thread().in_host_function = false;
}

}  // namespace

extern "C" {

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return create_stream("cuStreamCreate", stream, flags, 0);
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return create_stream("cuStreamCreateWithPriority", stream, flags, priority);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return api("cuStreamDestroy", Needs::kContext, [&](Call& call) {
    const std::shared_ptr<Stream> stream =
        call.driver.streams.get(handle, CUDA_ERROR_INVALID_HANDLE);
    leave_capture(call.driver, *stream);
    call.driver.streams.remove(handle);
    close_stream(*stream);
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return ask_stream("cuStreamSynchronize", handle, [](Call& call, const auto& stream) {
    wait_for(call, points_of(stream));
    trim_pools(call.driver, *call.context->device);
    return stream->context->broken;
  });
}
WEIR_PTSZ(cuStreamSynchronize, (CUstream stream), stream)

CUresult cuStreamQuery(CUstream handle) {
  return ask_stream("cuStreamQuery", handle, [](Call& /*call*/, const auto& stream) {
    return is_idle(*stream) ? stream->context->broken : CUDA_ERROR_NOT_READY;
  });
}
WEIR_PTSZ(cuStreamQuery, (CUstream stream), stream)

CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return stream_property("cuStreamGetFlags", handle, flags,
                         [](const Stream& stream) { return stream.flags; });
}
WEIR_PTSZ(cuStreamGetFlags, (CUstream stream, unsigned int* flags), stream, flags)

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return stream_property("cuStreamGetPriority", handle, priority,
                         [](const Stream& stream) { return stream.priority; });
}
WEIR_PTSZ(cuStreamGetPriority, (CUstream stream, int* priority), stream, priority)

/// A handle is never used again here, so it is its own id.
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return stream_property("cuStreamGetId", handle, id, [](const Stream& stream) {
    return reinterpret_cast<std::uintptr_t>(stream.handle);
  });
}
WEIR_PTSZ(cuStreamGetId, (CUstream stream, unsigned long long* id), stream, id)

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return stream_property("cuStreamGetCtx", handle, context,
                         [](const Stream& stream) { return stream.context->handle; });
}
WEIR_PTSZ(cuStreamGetCtx, (CUstream stream, CUcontext* context), stream, context)

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  // XLA's own threads call it without a current context: a created stream has one.
  const bool of_context =
      handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  return api("cuLaunchHostFunc", of_context ? Needs::kContext : Needs::kDriver, [&](Call& call) {
    require(function != nullptr);
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    call.context = stream->context;
    pass(call.context->broken);
    submit(call, stream, {.work = [=] { run_on_host(function, data); }, .is_host_function = true});
  });
}
WEIR_PTSZ(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void* data), stream, function,
          data)

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void* data,
                             unsigned int flags) {
  return api("cuStreamAddCallback", Needs::kContext, [&](Call& call) {
    require(function != nullptr && flags == 0);
    const std::shared_ptr<Stream> stream = get_stream(call, handle);
    refuse_capturing(*stream);
    submit(call, stream,
           {.report = [=](CUresult state) { run_on_host(function, handle, state, data); },
            .is_host_function = true});
  });
}
WEIR_PTSZ(cuStreamAddCallback,
          (CUstream stream, CUstreamCallback function, void* data, unsigned int flags), stream,
          function, data, flags)

}  // extern "C"
