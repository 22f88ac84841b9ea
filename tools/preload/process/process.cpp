#include "tools/preload/process/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "allocator/base/calling_thread.hpp"
#include "allocator/base/log.hpp"
#include "allocator/base/variables.hpp"
#include "tools/preload/context/known_streams.hpp"
#include "tools/preload/process/at_exit.hpp"
#include "tools/preload/process/publishing.hpp"
#include "tools/timeline/model/background_thread.hpp"

namespace weir::preload {
namespace {

constinit std::atomic<Process*> instance{nullptr};
constinit std::atomic<bool> in_child{false};
constinit pthread_once_t process_once = PTHREAD_ONCE_INIT;

/// A forked child has its parent's memory but no threads, locks or device: it passes every call.
void pass_all_in_child() noexcept {
  in_child.store(true);
  instance.store(nullptr);
}

/// Returns a line for each pool of the device if there are several, for the report.
std::string pools_text(const Device& device) {
  std::string text;
  std::size_t pools = 0;
  for (const Arena* const arena : device.arenas()) {
    for (const Pools::Part& part : arena->pool().parts()) {
      if (part.pool == nullptr) continue;
      ++pools;
      const Statistics now = part.pool->statistics();
      if (now.reserved.current.count == 0) continue;
      text += "\n    pool of " + std::string(part.serves) + " (" +
              std::string(to_string(part.pool->options().kind.value)) + "): reserved " +
              format_bytes(now.reserved.current) + " = allocated " +
              format_bytes(now.allocated.current) + " + awaiting " +
              format_bytes(now.awaiting.current) + " + cached " + format_bytes(now.cached.current);
    }
  }
  return pools > 1 ? text : std::string();
}

}  // namespace

Process* Process::get() noexcept {
  if (Inside::now()) return nullptr;
  Process* const there = instance.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  if (in_child.load(std::memory_order_relaxed) || preload::driver() == nullptr) return nullptr;
  pthread_once(&process_once, &Process::set_up);
  return instance.load(std::memory_order_acquire);
}

Process* Process::get_if_any() noexcept {
  return Inside::now() ? nullptr : instance.load(std::memory_order_acquire);
}

bool Process::is_forked_child() noexcept { return in_child.load(std::memory_order_relaxed); }

void Process::set_up() noexcept {
  const NoCancel no_cancel;
  try {
    Settings settings = Settings::from_environment();
    set_log_level(settings.log.value);
    // `weir run` sets it after warning.
    if (std::getenv("WEIR_CHECKED") == nullptr) warn_of_unknown_variables(environ);
    auto* const made = new Process(*preload::driver(), std::move(settings));
    pthread_atfork(nullptr, nullptr, &pass_all_in_child);
    timeline::set_call_check(&Call::is_inside);
    std::atexit([] {
      const Process* const ending = instance.load();
      if (ending != nullptr) ending->at_exit();
    });
    show_devices(*made);
    begin_timeline(made->settings().timeline);
    instance.store(made, std::memory_order_release);
    begin_publishing(made->settings());
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

Process::Process(const Driver& driver, Settings settings)
    : driver_(driver),
      settings_(std::move(settings)),
      spilled_(driver, gate_),
      devices_(driver, settings_, gate_),
      contexts_(driver, settings_, devices_, spilled_),
      ownership_(settings_, contexts_, gate_, spilled_) {}

CUresult Process::allocate(Call& call, Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                           StreamId stream) noexcept {
  std::string why;
  const CUresult code = arena.allocate(call, pointer, bytes, stream, why);
  if (settings_.spill.value == SpillTo::kHost) {
    if (code == CUDA_SUCCESS) Spilled::note_served();
    if (code == CUDA_ERROR_OUT_OF_MEMORY && spilled_.allocate(call, arena, pointer, {bytes})) {
      return CUDA_SUCCESS;
    }
  }
  arena.device().keep_share();
  if (why.empty()) return code;
  // Often a search for the largest block. What the pools hold has nothing to do with it.
  if (Bytes{bytes} > arena.account().budget()) {
    say_beyond(arena.account(), {bytes});
  } else {
    report(arena.device(), why);
  }
  return code;
}

void Process::count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle,
                    CUcontext context, CUmemoryPool pool, OwnMemory* own) noexcept {
  attempt(LogLevel::kDebug, "counted for ever", [&] {
    if (pool == nullptr) account.add_passed(kind, bytes);
    if (own != nullptr) own->note_allocated(pool, bytes);
    passed_.add(handle, {.account = &account,
                         .context = context,
                         .kind = kind,
                         .bytes = bytes,
                         .pool = pool,
                         .own = own});
  });
}

int Process::default_pool_of(CUmemoryPool pool) noexcept {
  const Inside inside;
  int count = 0;
  if (driver_.cuDeviceGetDefaultMemPool == nullptr ||
      driver_.cuDeviceGetCount(&count) != CUDA_SUCCESS) {
    return -1;
  }
  for (int device = 0; device < count; ++device) {
    CUmemoryPool its = nullptr;
    if (driver_.cuDeviceGetDefaultMemPool(&its, device) == CUDA_SUCCESS && its == pool) {
      return device;
    }
  }
  return -1;
}

Device* Process::device_of(CUmemoryPool pool) const noexcept {
  return attempt<Device*>(LogLevel::kDebug, "an own pool is not known", nullptr, [&]() -> Device* {
    const std::vector<Device*> devices = devices_.all();
    const auto found =
        std::ranges::find_if(devices, [&](Device* device) { return device->own().has(pool); });
    return found != devices.end() ? *found : nullptr;
  });
}

void Process::end_own_pool(Device& device, CUmemoryPool pool, Bytes used) noexcept {
  const Bytes alive = passed_.orphan(pool);
  OwnMemory::Points points;
  attempt(LogLevel::kDebug, "freed memory of an own pool is not counted", [&] {
    for (Arena* const arena : device.arenas()) {
      Fences& fences = arena->fences();
      points.emplace_back(&fences, fences.record(fences.everything()));
    }
  });
  Bytes left = minus_or_zero(OwnMemory::in_pieces(used), alive);
  if (points.empty()) left = {};  // nobody would say when it is the driver's
  device.own().end(pool, left, std::move(points));
}

void Process::note_end_of_captures() noexcept {
  attempt(LogLevel::kDebug, "memory is released later", [&] {
    release_held();
    devices_.keep_budgets();
    ownership_.finish_parked();
  });
}

void Process::release_held() {
  std::vector<Arena*> idle = contexts_.all();
  std::erase_if(
      idle, [](Arena* arena) { return !arena->upstream().holds() || arena->fences().capturing(); });
  if (idle.empty()) return;
  const ContextGate::Turn turn(gate_, time_after_now(settings_.max_wait.value));
  if (!turn.granted()) return;  // at the end of the next capture
  for (Arena* const arena : idle) {
    arena->upstream().release_held(arena->upstream().may_release());
  }
}

void Process::forget(CUcontext context) noexcept {
  Arena* const ended = contexts_.remove(context);
  KnownStreams::clear();
  spilled_.forget(context);
  if (ended != nullptr) ended->forget();
  passed_.forget(context);
}

void Process::say_beyond(const Account& account, Bytes bytes) noexcept {
  if (told_beyond_.exchange(true)) return;
  try {
    log(LogLevel::kWarn, "GPU " + std::to_string(account.device()) + ": " + format_bytes(bytes) +
                             " were requested, more than the whole budget of " +
                             format_bytes(account.budget()) +
                             "; the program got an out-of-memory error, and this is said once");
  } catch (const std::exception&) {
    return;  // no memory for a remark
  }
}

void Process::report(Device& device, const std::string& text) noexcept {
  if (reported_.exchange(true)) return;
  try {
    std::string all = "GPU " + std::to_string(device.number()) + ": " + text + pools_text(device);
    for (const Passed& kind : device.account().passed_kinds()) {
      if (kind.level.current.count == 0) continue;
      all += "\n    passed: " + kind.kind + " " + format_bytes(kind.level.current) +
             (kind.counted ? "" : " (not of the budget)");
    }
    log(LogLevel::kError, all + "\n    printed once; the program got an out-of-memory error");
  } catch (const std::exception&) {
    log(LogLevel::kError, "out of memory, also on the host");
  }
}

Summary Process::summary() const {
  Summary summary{.process = static_cast<std::uint64_t>(getpid()),
                  .program = program_path(),
                  .pool = pool_name(settings_),
                  .policy = std::string(to_string(settings_.policy.policy.value)),
                  .nvml = std::string(to_string(settings_.nvml.value)),
                  .settings = describe(settings_),
                  .devices = {}};
  for (const Device* const device : devices_.all()) {
    const Account& account = device->account();
    DeviceSummary its;
    its.device = account.device();
    its.total = account.total();
    its.budget = account.budget();
    its.served_calls = device->served_calls();
    its.served = device->served();
    its.passed = account.passed_kinds();
    contexts_.for_each_ever([&](Arena& arena) {
      if (&arena.device() == device) add(its, arena);
    });
    summary.devices.push_back(std::move(its));
  }
  return summary;
}

void Process::add_figures(LiveFigures& figures) const {
  const auto figures_of = [&](const Device& device) {
    return figures.of(static_cast<std::uint16_t>(device.number() + 1));
  };
  contexts_.for_each_ever([&](Arena& arena) {
    DeviceFigures* const its = figures_of(arena.device());
    if (its == nullptr) return;
    const Account& account = arena.account();
    const Bytes more = minus_or_zero(account.budget(), its->budget);
    its->budget += more;
    figures.budget += more;
    its->total = account.total();
    its->used = account.used();
  });
  for (Arena* const arena : contexts_.all()) {
    DeviceFigures* const its = figures_of(arena->device());
    if (its == nullptr) continue;
    const Waits paced = arena->paced();
    const Waits others = arena->waits_for_others();
    its->waits += paced.count + others.count;
    its->waited += paced.total + others.total;
    its->raise_pressure(arena->pool().pressure().level, arena->pool().sums().at_level());
  }
}

void Process::at_exit() const noexcept {
  if (!is_summary_wanted(settings_)) return;
  const NoCancel no_cancel;
  const FileSizeSignalBlocked blocked;  // the signal would end a program that ended well
  if (timeline::exits_in_call()) {
    timeline::say_unlocked(
        LogLevel::kWarn,
        "no summary: exit() was called in a signal handler, in the middle of a call");
    return;
  }
  // Another thread may be stuck in a call while holding a lock that the summary needs.
  constexpr std::chrono::seconds kPatience{5};
  attempt(LogLevel::kError, "no summary", [&] {
    const bool written = finish_within(kPatience, [this] {
      attempt(LogLevel::kError, "no summary", [&] { write_summary(summary(), settings_); });
    });
    if (!written) {
      log(LogLevel::kWarn,
          "no summary: another thread is stuck in a call, or the disk does not answer");
    }
  });
}

}  // namespace weir::preload
