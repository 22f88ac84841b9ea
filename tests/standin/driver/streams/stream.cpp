#include "tests/standin/driver/streams/stream.hpp"

#include <algorithm>

#include "tests/standin/driver/memory/memory.hpp"
#include "tests/standin/driver/streams/capture.hpp"

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

CUresult submit(Call& call, const std::shared_ptr<Stream>& stream, Operation operation,
                bool* captured) {
  const CUresult refused = check_implicit(call, *stream);
  if (refused != CUDA_SUCCESS) return refused;
  if (captured != nullptr) *captured = stream->capture != nullptr;
  if (!stream->capture) {
    enqueue(stream, std::move(operation));
    return CUDA_SUCCESS;
  }
  return add_to_capture(*stream, {.work = std::move(operation.work),
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
