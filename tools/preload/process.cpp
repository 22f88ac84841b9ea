#include "tools/preload/process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

#include "allocator/error.hpp"
#include "allocator/log.hpp"
#include "tools/preload/at_exit.hpp"

namespace weir::preload {
namespace {

constinit std::atomic<Process*> instance{nullptr};
constinit std::atomic<bool> in_child{false};
constinit pthread_once_t once = PTHREAD_ONCE_INIT;

/// What a thread found last.
struct Remembered {
  CUcontext context = nullptr;
  std::uint64_t generation = 0;
  Arena* arena = nullptr;
};
constinit thread_local Remembered remembered{};

/// A child has its parent's memory and none of its threads, locks or device: it only passes on.
void pass_all_in_child() noexcept {
  in_child.store(true);
  instance.store(nullptr);
}

[[noreturn]] void refuse_to_go_on(const char* why) noexcept {
  log(LogLevel::kError, why);
  std::fflush(nullptr);
  _exit(2);  // the program is inside a call of its runtime: its exit handlers could wait for that
}

}  // namespace

Process* Process::get() noexcept {
  if (Inside::now()) return nullptr;
  Process* const there = instance.load(std::memory_order_acquire);
  if (there != nullptr) return there;
  if (in_child.load(std::memory_order_relaxed) || preload::driver() == nullptr) return nullptr;
  pthread_once(&once, &Process::set_up);
  return instance.load(std::memory_order_acquire);
}

Process* Process::get_if_any() noexcept {
  return Inside::now() ? nullptr : instance.load(std::memory_order_acquire);
}

void Process::set_up() noexcept {
  try {
    Settings settings = Settings::from_environment();
    set_log_level(settings.log.value);
    auto* const made = new Process(*preload::driver(), std::move(settings));
    pthread_atfork(nullptr, nullptr, &pass_all_in_child);
    std::atexit([] {
      const Process* const ending = instance.load();
      if (ending != nullptr) ending->at_exit();
    });
    instance.store(made, std::memory_order_release);
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

Process::Process(const Driver& driver, Settings settings)
    : driver_(driver), settings_(std::move(settings)) {}

Arena* Process::current() noexcept {
  CUcontext context = nullptr;
  if (driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return nullptr;
  const std::uint64_t generation = generation_.load(std::memory_order_acquire);
  if (remembered.context == context && remembered.generation == generation) {
    return remembered.arena;
  }
  Arena* const arena = find_or_make(context);
  remembered = {context, generation, arena};
  return arena;
}

Arena* Process::find_or_make(CUcontext context) noexcept {
  const Inside inside;
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  Account* const its = account(device);
  if (its == nullptr) return nullptr;
  bool first = false;
  Arena* arena = nullptr;
  try {
    const Lock lock(mutex_);
    for (const auto& known : arenas_) {
      if (known->context() == context) return known.get();
    }
    first = arenas_.empty() && gone_.empty();
    arenas_.push_back(std::make_unique<Arena>(driver_, context, *its, settings_));
    arena = arenas_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
  if (first) say_active(*its);
  return arena;
}

void Process::say_active(const Account& account) const {
  std::string text = "active";
  for (const SettingLine& line : describe(settings_)) {
    if (line.name == "pool" || line.name == "policy" || line.name == "run-ahead") {
      text += ", " + std::string(line.name) + " " + line.value;
    }
  }
  log(LogLevel::kInfo, text + ", budget " + format_bytes(account.budget()) + " of " +
                           format_bytes(account.total()) + " (" + settings_.pool.budget.source +
                           ")");
}

Account* Process::account(int device) noexcept {
  const Lock lock(mutex_);
  for (const auto& known : accounts_) {
    if (known->device() == device) return known.get();
  }
  std::size_t total = 0;
  if (driver_.cuDeviceTotalMem_v2(&total, device) != CUDA_SUCCESS) return nullptr;
  try {
    const auto& asked = settings_.pool.budget;
    const Bytes budget = resolve_budget(asked.value, {total}, "budget (" + asked.source + ")");
    accounts_.push_back(std::make_unique<Account>(device, Bytes{total}, budget));
    return accounts_.back().get();
  } catch (const std::exception& error) {
    refuse_to_go_on(error.what());
  }
}

CUcontext Process::current_context() const noexcept {
  CUcontext context = nullptr;
  return driver_.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? context : nullptr;
}

Account* Process::current_account() noexcept {
  CUdevice device = 0;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return nullptr;
  return account(device);
}

Arena* Process::primary(int device) noexcept {
  unsigned int flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  const Inside inside;
  if (driver_.cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0 ||
      driver_.cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) {
    return nullptr;
  }
  (void)driver_.cuDevicePrimaryCtxRelease_v2(device);  // others hold it: it is active
  const ContextScope scope(driver_, context);
  return scope.good() ? find_or_make(context) : nullptr;
}

std::vector<Arena*> Process::arenas() const {
  const Lock lock(mutex_);
  std::vector<Arena*> all;
  for (const auto& arena : arenas_) all.push_back(arena.get());
  return all;
}

int Process::default_pool_of(CUmemoryPool pool) noexcept {
  const Inside inside;
  const Lock lock(mutex_);
  for (const auto& account : accounts_) {
    CUmemoryPool its = nullptr;
    if (driver_.cuDeviceGetDefaultMemPool != nullptr &&
        driver_.cuDeviceGetDefaultMemPool(&its, account->device()) == CUDA_SUCCESS && its == pool) {
      return account->device();
    }
  }
  return -1;
}

void Process::set_own_pool(int device, bool own) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (static_cast<unsigned>(device) % 64U);
  if (own) {
    own_pools_.fetch_or(bit);
  } else {
    own_pools_.fetch_and(~bit);
  }
}

CUresult Process::allocate(Arena& arena, CUdeviceptr& pointer, std::size_t bytes,
                           StreamId stream) noexcept {
  std::string why;
  const CUresult code = arena.allocate(pointer, bytes, stream, why);
  if (!why.empty()) report(arena.account(), why);
  return code;
}

std::optional<CUresult> Process::free(Arena* here, CUdeviceptr pointer, const CUstream* stream,
                                      bool per_thread) noexcept {
  const auto try_in = [&](Arena& arena) {
    Fences& fences = arena.fences();
    return arena.free(pointer,
                      stream != nullptr ? fences.find(*stream, per_thread) : fences.everything());
  };
  try {
    if (here != nullptr) {
      if (const auto code = try_in(*here)) return code;
    }
    for (Arena* const arena : arenas()) {
      if (arena == here) continue;
      // A stream of one context says nothing in another: there all of them are waited for.
      if (const auto code = arena->free(pointer, arena->fences().everything())) return code;
    }
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("a free failed: ") + error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return std::nullopt;
}

void Process::trim(const Account& account) noexcept {
  try {
    for (Arena* const arena : arenas()) {
      if (&arena->account() == &account && !arena->fences().capturing()) (void)arena->pool().trim();
    }
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("nothing could be given back: ") + error.what());
  }
}

void Process::drain(const Account& account) noexcept {
  if (!running_out(settings_.policy.policy.value).wait) return;
  try {
    Fences::begin_request();
    for (Arena* const arena : arenas()) {
      Fences& fences = arena->fences();
      if (&arena->account() == &account && arena->pool().statistics().reserved.current.count != 0) {
        (void)fences.wait(fences.record(fences.everything()), {});
      }
    }
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("nothing could be waited for: ") + error.what());
  }
}

bool Process::make_room(Account& account, Bytes bytes) noexcept {
  if (account.take(bytes)) return true;
  trim(account);
  if (account.take(bytes)) return true;
  drain(account);
  trim(account);
  if (account.take(bytes)) return true;
  report(account, "out of memory: asked " + format_bytes(bytes) + " of the driver, budget " +
                      format_bytes(account.budget()) + ", in use " + format_bytes(account.used()));
  return false;
}

void Process::count(Account& account, Kind kind, Bytes bytes, std::uint64_t handle,
                    CUcontext context) noexcept {
  try {
    account.add_passed(kind, bytes);
    passed_.add(handle, {.account = &account, .context = context, .kind = kind, .bytes = bytes});
  } catch (const std::exception& error) {
    log(LogLevel::kDebug, std::string("counted for ever: ") + error.what());
  }
}

void Process::forget(CUcontext context) noexcept {
  Arena* gone = nullptr;
  {
    const Lock lock(mutex_);
    const auto found = std::find_if(arenas_.begin(), arenas_.end(), [&](const auto& arena) {
      return arena->context() == context;
    });
    if (found != arenas_.end()) {
      gone = found->get();
      gone_.push_back(std::move(*found));
      arenas_.erase(found);
      generation_.fetch_add(1);
    }
  }
  if (gone != nullptr) gone->forget();
  passed_.forget(context);
}

void Process::report(const Account& account, const std::string& text) noexcept {
  if (reported_.exchange(true)) return;
  try {
    std::string all = "GPU " + std::to_string(account.device()) + ": " + text;
    for (const Passed& kind : account.passed_kinds()) {
      if (kind.level.current.count == 0) continue;
      all += "\n    passed: " + kind.kind + " " + format_bytes(kind.level.current) +
             (kind.counted ? "" : " (not of the device)");
    }
    log(LogLevel::kError, all + "\n    said once; the program was told that memory is out");
  } catch (const std::exception&) {
    log(LogLevel::kError, "out of memory, of the host too");
  }
}

Summary Process::summary() const {
  Summary summary{.process = static_cast<std::uint64_t>(getpid()),
                  .program = program_path(),
                  .pool = std::string(to_string(settings_.pool.kind.value)),
                  .policy = std::string(to_string(settings_.policy.policy.value)),
                  .devices = {}};
  const Lock lock(mutex_);
  for (const auto& account : accounts_) {
    DeviceSummary device;
    device.device = account->device();
    device.total = account->total();
    device.budget = account->budget();
    device.served_calls = account->served_calls();
    device.served = account->served();
    device.passed = account->passed_kinds();
    for (const auto* list : {&arenas_, &gone_}) {
      for (const auto& arena : *list) {
        if (&arena->account() == account.get()) add(device, *arena);
      }
    }
    summary.devices.push_back(std::move(device));
  }
  return summary;
}

void Process::at_exit() const noexcept {
  try {
    write_summary(summary(), settings_);
  } catch (const std::exception& error) {
    log(LogLevel::kError, std::string("no summary: ") + error.what());
  }
}

}  // namespace weir::preload
