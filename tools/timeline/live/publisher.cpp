#include "tools/timeline/live/publisher.hpp"

#include <link.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <new>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/timeline/source.hpp"
#include "tools/timeline/live/block_file.hpp"
#include "tools/timeline/live/folder.hpp"
#include "tools/timeline/model/background_thread.hpp"

namespace weir::timeline {
namespace {

std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t count_of(std::chrono::nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
}

LiveSample sample_of(const LiveFigures& figures) noexcept {
  DeviceFigures most;
  for (std::size_t i = 0; i < figures.device_count; ++i) {
    const DeviceFigures& device = figures.devices.at(i);
    most.raise_pressure(device.pressure, device.at_pressure);
  }
  return {.time_ns = monotonic_ns(),
          .budget = figures.budget.count,
          .requested = figures.requested.count,
          .allocated = figures.allocated.count,
          .awaiting = figures.awaiting.count,
          .cached = figures.cached.count,
          .reserved = figures.reserved.count,
          .peak = figures.peak.count,
          .failures = figures.failures,
          .open = figures.open,
          .submitted = figures.submitted,
          .settled = figures.settled,
          .stalls = figures.stalls,
          .stalled_ns = count_of(figures.stalled),
          .knows_busy = figures.knows_busy ? 1U : 0U,
          .busy_ns = count_of(figures.busy),
          .pressure = static_cast<std::uint64_t>(most.pressure),
          .soft_ns = count_of(time_at(most.at_pressure, PressureLevel::kSoft)),
          .hard_ns = count_of(time_at(most.at_pressure, PressureLevel::kHard))};
}

LiveDeviceSample devices_of(const LiveFigures& figures) noexcept {
  static_assert(kLiveDevices == LiveFigures::kMostDevices);
  LiveDeviceSample sample{.count = figures.device_count};
  for (std::size_t i = 0; i < figures.device_count; ++i) {
    const DeviceFigures& device = figures.devices.at(i);
    sample.devices.at(i) = {.device = device.device,
                            .total = device.total.count,
                            .budget = device.budget.count,
                            .used = device.used.count,
                            .allocated = device.allocated.count,
                            .awaiting = device.awaiting.count,
                            .cached = device.cached.count,
                            .reserved = device.reserved.count,
                            .failures = device.failures,
                            .waits = device.waits,
                            .waited_ns = count_of(device.waited),
                            .pressure = static_cast<std::uint64_t>(device.pressure),
                            .soft_ns = count_of(time_at(device.at_pressure, PressureLevel::kSoft)),
                            .hard_ns = count_of(time_at(device.at_pressure, PressureLevel::kHard))};
  }
  return sample;
}

void take_sample(BlockFile& block) {
  LiveFigures figures;
  for_each_source([&figures](const TimelineSource& source) { source.add_figures(figures); });
  block.append(sample_of(figures), devices_of(figures));
}

void log_not_shown(const std::exception& error) {
  log(LogLevel::kDebug, std::string("weir top will not show this process: ") + error.what());
}

/// Answers pending requests.
void serve(BlockFile& block, const LiveListener& listener) noexcept {
  const auto ask = block.next_request();
  if (!ask) return;
  if (!block.is_intact()) {
    block.answer({.code = BudgetCode::kTampered});
  } else if (listener.set_budget == nullptr) {
    block.answer({.code = BudgetCode::kFixed});
  } else {
    block.answer(listener.set_budget(*ask));
  }
}

/// Returns the bytes of the thread-local objects of the program and its libraries, which lie in
/// each thread's stack.
std::size_t thread_local_bytes() noexcept {
  std::size_t bytes = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* sum) {
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& segment = object->dlpi_phdr[i];
          if (segment.p_type == PT_TLS) *static_cast<std::size_t*>(sum) += segment.p_memsz;
        }
        return 0;
      },
      &bytes);
  return bytes;
}

/// Makes the stack small, if the system allows it.
int make_thread(pthread_t& thread, void* (*body)(void*), void* argument) noexcept {
  constexpr std::size_t kStack = 256UL << 10U;
  const AllSignalsBlocked blocked;
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kStack + thread_local_bytes());
  int error = pthread_create(&thread, &small, body, argument);
  pthread_attr_destroy(&small);
  if (error != 0) error = pthread_create(&thread, nullptr, body, argument);
  return error;
}

}  // namespace

struct Publisher::State {
  explicit State(Options given) : options(std::move(given)) {}

  const Options options;
  Mutex mutex{LockRank::kTimeline};
  std::condition_variable_any changed;
  pthread_t thread WEIR_GUARDED_BY(mutex){};
  bool started WEIR_GUARDED_BY(mutex) = false;
  bool stop WEIR_GUARDED_BY(mutex) = false;
  bool done WEIR_GUARDED_BY(mutex) = false;
  std::uint64_t samples WEIR_GUARDED_BY(mutex) = 0;
  std::string path WEIR_GUARDED_BY(mutex);
  std::vector<std::string> devices WEIR_GUARDED_BY(mutex);

  void publish() WEIR_EXCLUDES(mutex);
  void finish() noexcept WEIR_EXCLUDES(mutex);
};

/// Publishes until told to stop, or until the program ends without running exit handlers.
void Publisher::State::publish() {
  const BackgroundThread watching;
  BlockFile block(options.folders, options.program.empty() ? command_line() : options.program);
  auto next = std::chrono::steady_clock::now();
  std::size_t named = 0;
  Lock lock(mutex);
  path = block.path();
  while (!stop) {
    for (; named < devices.size(); ++named) block.add_device(devices[named]);
    lock.unlock();
    serve(block, options.listener);
    if (options.listener.look != nullptr) options.listener.look();
    take_sample(block);
    lock.lock();
    ++samples;
    changed.notify_all();
    // Does not catch up on missed samples after the machine slept.
    next = std::max(next + options.period, std::chrono::steady_clock::now());
    while (!stop && changed.wait_until(lock, next) == std::cv_status::no_timeout) continue;
    stop = stop || program_has_ended();
  }
}

void Publisher::State::finish() noexcept {
  const Lock lock(mutex);
  done = true;
  changed.notify_all();
}

Publisher::Publisher(Options options)
    : pid_(getpid()), state_(std::make_shared<State>(std::move(options))) {}

void* Publisher::run(void* held) {
  const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(held));
  pthread_setname_np(pthread_self(), "weir-live");
  try {
    (*state)->publish();
  } catch (const std::exception& error) {
    log_not_shown(error);
  }
  (*state)->finish();
  return nullptr;
}

void Publisher::start() noexcept {
  const Lock lock(state_->mutex);
  if (state_->started || state_->stop) return;
  try {
    auto held = std::make_unique<std::shared_ptr<State>>(state_);
    if (make_thread(state_->thread, run, held.get()) != 0) return;
    (void)held.release();
    state_->started = true;
  } catch (const std::bad_alloc&) {
    return;
  }
}

void Publisher::stop() noexcept {
  if (getpid() != pid_) return;  // in a child, the thread and its locks are the parent's
  const NoCancel no_cancel;
  constexpr std::chrono::seconds kPatience{1};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  pthread_t thread{};
  bool done = false;
  {
    Lock lock(state_->mutex);
    if (std::exchange(state_->stop, true) || !state_->started) return;
    state_->changed.notify_all();
    while (!state_->done) {
      if (state_->changed.wait_until(lock, deadline) == std::cv_status::timeout) break;
    }
    thread = state_->thread;
    done = state_->done;
    if (!done) unlink(state_->path.c_str());
  }
  (void)(done ? pthread_join(thread, nullptr) : pthread_detach(thread));
}

void Publisher::add_device(const std::string& name) {
  const Lock lock(state_->mutex);
  auto& devices = state_->devices;
  if (std::ranges::find(devices, name) == devices.end()) devices.push_back(name);
}

bool Publisher::wait_for_samples(std::uint64_t count) {
  Lock lock(state_->mutex);
  while (state_->samples < count && !state_->done) state_->changed.wait(lock);
  return state_->samples >= count;
}

std::string Publisher::path() const {
  const Lock lock(state_->mutex);
  return state_->path;
}

namespace {

/// This process's own publisher. Never destroyed, because the program may hold a pointer to it.
struct Own {
  Own(Publisher::Options options, const Own* parents)
      : publisher(std::move(options)), of_parent(parents) {}
  Publisher publisher;
  const int pid = getpid();    ///< a child sees its parent's
  const Own* const of_parent;  ///< what a child sees
};
constinit std::atomic<Own*> own_publisher{nullptr};

}  // namespace

Publisher* Publisher::begin(const PublishSetting& setting, const Environment& environment,
                            LiveListener listener) noexcept {
  if (!setting.on) return nullptr;
  Own* own = own_publisher.load(std::memory_order_acquire);
  if (own != nullptr && own->pid == getpid()) return &own->publisher;
  try {
    auto made =
        std::make_unique<Own>(Options{.folders = live_folders(setting, environment, geteuid()),
                                      .program = {},
                                      .listener = listener},
                              own);
    if (!own_publisher.compare_exchange_strong(own, made.get(), std::memory_order_acq_rel)) {
      return &own->publisher;  // another thread was faster
    }
    own = made.release();
    static const int kAtExit = std::atexit(Publisher::end);
    (void)kAtExit;  // on failure, others remove the block
  } catch (const std::exception& error) {
    log_not_shown(error);
    return nullptr;
  }
  own->publisher.start();
  return &own->publisher;
}

void Publisher::end() noexcept {
  if (exits_in_call()) return;  // others remove the block, like that of a killed program
  Own* const own = own_publisher.load(std::memory_order_acquire);
  if (own != nullptr) own->publisher.stop();
}

}  // namespace weir::timeline
